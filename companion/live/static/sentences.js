/* Sentences of a text, by rule: `lib.data.sentences`, whose tables these are. Each function is the one of that name. */

const WINDOW = 48;  // characters that are looked at before and behind a mark
const BEFORE_A_WORD = "\"'“”‘’()[]«»";
const has = (word, ...tables) => tables.some(table => SENTENCES[table].has(word));

/** Split plain text into sentences. */
const splitSentences = text => [...sentencesOf(text)];

function* sentencesOf(text) {
  for (const part of linesOf(text)) for (const [a, b] of spans(part)) yield part.slice(a, b);
}

/** Places of the words of each sentence, for words of which a text is made by setting them apart by spaces. */
function groupWords(words) {
  const groups = [];
  let place = 0, at = 0;
  for (const [, end] of spans(words.join(" "))) {
    const group = [];
    while (place < words.length && at < end) {
      group.push(place);
      at += words[place++].length + 1;
    }
    if (group.length) groups.push(group);
  }
  return groups;
}

// ----------------------------------------------------------------------------------------------------------- lines

function* linesOf(text) {
  const lines = splitLines(text);
  if (lines.length < 2) { yield text; return; }
  let block = [];
  for (const line of [...lines, ""]) {
    if (strip(line)) block.push(strip(line));
    else if (block.length) { yield* joinedLines(block); block = []; }
  }
}

function* joinedLines(lines) {
  const ended = line => SENTENCES.ENDED.search(line.slice(-WINDOW)), begins = line => isLower([...line][0]);
  const marked = lines.some(ended), pairs = lines.slice(1).map((line, i) => [lines[i], line]);
  const inner = pairs.filter(([a]) => !ended(a)), lower = inner.filter(([, b]) => begins(b)).length;
  const caseless = marked && inner.length && ![...lines.join("")].some(c => isUpper(c) || isLower(c));
  const wrapped = caseless || marked && inner.length > 0 && 4 * lower >= inner.length;
  let whole = lines[0];
  for (const [last, line] of pairs) {
    const word = splitWords(last).at(-1).toLowerCase();
    const open = ",-(".includes(last.at(-1)) || has(word, "NOT_LABELS", "OPEN_WORDS") || abbreviated(last);
    const goesOn = wrapped || open || marked && begins(line) && !ended(last);
    if (goesOn && !startsItem(line)) whole += (whole.at(-1) > "\u2e80" && line[0] > "\u2e80" ? "" : " ") + line;
    else { yield whole; whole = line; }
  }
  yield whole;
}

const abbreviated = line =>
  line.endsWith(".") && has(splitWords(line).at(-1).slice(0, -1).toLowerCase().replace(/^\(+/, ""), "ABBREVIATIONS");

const ITEM_SIGN = re`[•⁃▪◦‣●*–-]\s`;
const startsItem = line => Boolean(ITEM_SIGN.match(line) || SENTENCES.MARKER.match(line));

// ------------------------------------------------------------------------------------------------------- sentences

/** Begin and end of each sentence of a text without line ends. */
function* spans(text) {
  let start = 0;
  for (const [end, following] of places(text, isCased(text))) {
    if (end <= start) continue;
    const span = stripped(text, start, end);
    if (span) yield span;
    start = following;
  }
  const span = stripped(text, start, text.length);
  if (span) yield span;
}

function stripped(text, start, end) {
  while (start < end && isSpace(text[start])) start++;
  while (end > start && isSpace(text[end - 1])) end--;
  return start < end ? [start, end] : null;
}

const CAPITAL_BEHIND = re`[.?!…] ?[\"'”’)]?\s*[A-Z]|[^\W\d_]\.[A-Z]`;

function isCased(text) {
  if (text === text.toLowerCase()) return false;
  const first = [...text.slice(0, WINDOW)].find(isAlpha) ?? "A";
  return !isLower(first) || Boolean(CAPITAL_BEHIND.search(text));
}

/** Where sentences end, and where the next ones begin. */
function* places(text, cased) {
  const items = itemsOf(text), numbers = new Map(items);
  const matches = [...SENTENCES.CANDIDATE.finditer(text)].map(match => [match.index, match]);
  for (const [begin] of items) if (begin) matches.push([begin, null]);
  matches.sort((a, b) => a[0] - b[0]);
  let start = 0;
  for (const [place, match] of matches) {
    if (place < start) continue;
    if (!match) {
      if (place > start) { yield [place, place]; start = place; }
    } else if (place >= (numbers.get(start) ?? start) && ends(match, text, cased, start)) {
      const { marks, close, cited, space } = match.groups, closed = place + marks.length + close.length;
      const cites = closed + cited.length, next = cites + space.length;
      let item = null;
      for (let b = closed; b < next && item === null; b++) if (numbers.has(b)) item = b;
      const end = item ?? cites;
      start = item ?? next;
      yield [end, start];
    }
  }
}

/** Where the items of a list begin and their numbers end; the list begins the text, or behind a mark. */
function itemsOf(text) {
  if (!SENTENCES.MARKER.match(text, text.length - text.replace(new RegExp(`^[${SPACE}]+`), "").length)) return [];
  const chain = [];
  let expected = null;
  for (const marker of SENTENCES.MARKER.finditer(text)) {
    const at = marker.index, end = at + marker[0].length, before = rstrip(text.slice(Math.max(0, at - WINDOW), at));
    const [style, number] = styleOf(marker.groups), begins = !before || ".?!".includes(before.at(-1));
    const follows = expected && expected.style === style && expected.numbers.includes(number)
      && (begins || breaks(before, style, text.slice(end, end + 2)));
    if (!follows && !(begins && !before && (["", "a", "i", "I"].includes(number) || /^[1-9][0-9]*$/.test(number)))) continue;
    chain.push([at, end]);
    expected = { style, numbers: followingNumbers(number) };
  }
  return chain;
}

const styleOf = ({ only, bullet, open, close, number }) =>
  only ? [only, ""] : [`${strip(bullet ?? "")}${open}${close}`, number];

function breaks(before, style, following) {
  const last = splitWords(before).at(-1);
  if (style === ".")
    return isAlpha(last) && isLower(last) && !has(last, "NOT_LABELS", "LABELS") && isUpper(strip(following));
  return !",:;=".includes(last.at(-1)) && last !== "and" && last !== "or";
}

function followingNumbers(number) {
  if (/^[0-9]+$/.test(number)) return [String(Number(number) + 1)];
  if (isUpper(number)) return followingNumbers(number.toLowerCase()).map(following => following.toUpperCase());
  const after = number.length === 1 ? [String.fromCodePoint(number.codePointAt(0) + 1)] : number ? [] : [""];
  const roman = SENTENCES.ROMAN.indexOf(number);
  if (roman >= 0 && roman < SENTENCES.ROMAN.length - 1) after.push(SENTENCES.ROMAN[roman + 1]);
  return after;
}

/** A mark that may end a sentence, and what stands around it. */
class Mark {
  constructor(groups, word, words, behind, cased) {
    Object.assign(this, groups, { word, words, behind, cased, following: groups.next, low: word.toLowerCase() });
    this.bare = /^[\p{L}\p{N}_]*/v.exec(this.following.replace(/^["'“‘(\[]+/, ""))[0];
    this.last = words.at(-1) ?? "";
    this.starts = has(this.bare, "STARTERS") || !cased && has(this.bare, "LOWER_STARTERS");
  }
}

function ends(match, text, cased, start) {
  const place = match.index, { marks, close, cited, space, next } = match.groups;
  if (SENTENCES.ALWAYS.has([...marks][0])) return !"と、，".includes([...next][0]);
  const from = place + marks.length + close.length + cited.length + space.length;
  const behind = text.slice(from, from + WINDOW);
  if (SENTENCES.YEAR.match(behind)) return false;  // "Weller and Brandt . 2017 . On moss ."
  const begin = wordBegin(text, place, start);
  const words = splitWords(text.slice(Math.max(start, begin - WINDOW), begin));
  const mark = new Mark(match.groups, text.slice(begin, place), words, behind, cased);
  if (!space) return endsWithoutSpace(mark);
  if (!mark.word && place > 0 && isSpace(text[place - 1]))
    return endsTokenised(splitWords(text.slice(Math.max(start, place - WINDOW), place)), match.groups, behind, cased);
  if (!marks.includes(".") || [...marks].length > 1) return endsAtMark(mark);
  if (!(opens(mark, mark.low) || mark.following === ".") || !(mark.word || mark.words.length)) return false;
  for (const rule of STOP_RULES) {
    const answer = rule(mark);
    if (answer !== null) return answer;
  }
  return true;
}

function wordBegin(text, place, start) {
  let begin = place;
  const first = Math.max(start, place - WINDOW);
  while (begin > first && !isSpace(text[begin - 1]) && !BEFORE_A_WORD.includes(text[begin - 1])) begin--;
  return begin;
}

/** Whether the next word may begin a sentence: letters that have no case may, and names that begin small. */
function opens(mark, before = "") {
  const opening = SENTENCES.OPENING.match(mark.following);
  if (!opening) return false;
  if (mark.following[0] === "#" || !(mark.cased && isLower(opening.groups.first ?? ""))) return true;
  const known = has(before, "ABBREVIATIONS", "MAY_END")
    || !isDigit(before.slice(-1)) && (before.length < 3 || before.includes("."));
  return !known && (["pH", "mRNA"].includes(mark.following) || Boolean(SENTENCES.NAMED.match(mark.behind)));
}

const IN_A_NAME = re`[./@:=_\\]`, CAPITALISED = re`[A-Z][a-z]*[\s,]`;

/** "burned.Two years", and not "numpy.load" or "Node.js". */
function endsWithoutSpace(mark) {
  const { word } = mark;
  if (mark.cited || IN_A_NAME.search(word) || !CAPITALISED.match(mark.behind)) return false;
  if (!word || mark.close || word.at(-1) === "%" || "?!".includes(mark.marks[0])) return true;
  return [...word].length > 2 && isAlpha(word) && isLower(word) && !has(word, "ABBREVIATIONS", "MODULES");
}

/** At a question or exclamation mark, or an ellipsis. */
function endsAtMark(mark) {
  const { marks, close, following } = mark;
  if (close.startsWith("]") || !opens(mark)) return false;
  if ("?!".includes(marks.at(-1)) && /["'”’»]/.test(close) && SENTENCES.SPEECH.match(mark.behind)) return false;
  if (has(mark.low, "NAMES_WITH_MARKS") && "?!".includes(marks))
    return has(following, "STARTERS") && following !== "At" && following !== "In" || mark.low === "yahoo" && marks === "?";
  return true;
}

// -------------------------------------------------------------------------------------------------- tokenised text

/** Where the word and the mark are apart: "et al . ( 2003 )". */
function endsTokenised(words, { next, marks }, behind, cased) {
  const word = words.at(-1) ?? "";
  if (!word || ".?!;".includes(word.at(-1)) || ".,;:?!)]}\"'”’".includes(next[0]))
    return words.slice(-3).join(" ") === ". . ." && isUpper([...next][0]);
  if (cased && isLower([...next][0])) return false;
  if (marks !== ".") return [...marks][0] !== "…" && !has(word.toLowerCase(), "NAMES_WITH_MARKS");
  if (isDigit(word) && word.length < 4 && (words.length === 1 || [".", ";", ":"].includes(words.at(-2)))) return false;
  const starts = has(next, "STARTERS") || !cased && has(next, "LOWER_STARTERS"), low = word.toLowerCase();
  if ([...word].length === 1 && isAlpha(word)) {
    if (has(dotted(words).join("."), "ABBREVIATIONS") || behind.slice(1, 3) === " ." && isAlpha(next)) return false;
    return starts || words.length > 1 && has(words.at(-2), "LABELS");
  }
  if (has(low, "ABBREVIATIONS") || inAnAddress(words, next) || inANumber(word, next)) return false;
  return starts || word === "etc" && isAlpha(next) || !has(low, "MAY_END", "OFTEN_END") || has(low, "UNITS");
}

const ADDRESS = re`[\w./-]+`;

/** "http : / / data . example . org". */
function inAnAddress(words, following) {
  if (words.at(-1) === "www" || has(following, "DOMAINS")) return true;
  const whole = words.join("");
  return whole.includes("//") && Boolean(ADDRESS.fullmatch(words.includes("/") ? whole.split("//").at(-1) : ""));
}

/** "at . 5 %" and "protein2 . 2". */
const inANumber = (word, following) =>
  isDigit(following[0]) && (isDigit(word.at(-1)) && !isDigit(word[0]) || has(word, "NOT_LABELS"));

/** Letters at the end of words that stops set apart: u, s of "the u . s". */
function dotted(words) {
  const letters = [words.at(-1)];
  for (let i = words.length - 3; i >= 0; i -= 2) {
    if (words[i + 1] !== "." || [...words[i]].length > 2) break;
    letters.unshift(words[i]);
  }
  return letters;
}

// ---------------------------------------------------------------------------------------- a full stop behind a word
// Rules say whether the stop ends a sentence, or null where they do not apply. The first that says something counts.

const P = {
  stops: re`\. \. \. [A-Z]`, bracketed: re`\([^()]{1,40}\)[.,;]`, numbered: re`[A-Z]*\d`,
  address: re`\d|[A-Z]\S* [A-Z]`, initials: re`[A-Z]\.|[A-Z]\w+ (?:and|&) [A-Z]`, names: re`[A-Z]\w+ [A-Z]`,
  time: re`\w+ time\b`,
};

const STOP_RULES = [
  function beforeAnEllipsis(mark) { return mark.following === "." ? Boolean(P.stops.match(mark.behind)) : null; },

  function beforeCompanyForm(mark) { return SENTENCES.COMPANY_FORM.match(mark.following) ? false : null; },

  function beforeAClosingMark(mark) {
    if (!mark.close) return null;
    if (P.bracketed.match(mark.behind) || mark.low.includes(".") && isDigit(mark.following[0])) return false;
    return !has(mark.low, "ABBREVIATIONS") || mark.starts;
  },

  function behindANumber(mark) {
    if (!mark.words.length && SENTENCES.SECTION_NUMBER.fullmatch(mark.word) && mark.word.length < 4) return false;
    if (!isDigit(mark.word) || mark.word.length > 3) return null;
    const item = mark.word.length < 3 && /[:;]$/.test(mark.last);
    const ordinal = has(mark.last.toLowerCase(), "GERMAN_ARTICLES") && !has(mark.bare, "STARTERS");
    return item || ordinal || SENTENCES.MONTHS_AND_NOUNS.match(mark.following) ? false : null;
  },

  function behindAUnit(mark) {
    const unit = has(mark.low, "UNITS") || [...mark.word].length === 1 && isLower(mark.word);
    return unit && isDigit(mark.last.slice(-1)) ? !mark.following.startsWith("(") : null;
  },

  function behindNo(mark) {
    if (mark.low !== "no") return null;
    return !mark.words.length || !(P.numbered.match(mark.bare) || has(mark.bare, "NUMBERS"));
  },

  function behindAnInitial(mark) {
    if ([...mark.word].length !== 1 || !isUpper(mark.word)) return null;
    const low = mark.last.toLowerCase().replace(/^[("']+|[("']+$/g, ""), { last, starts, behind } = mark;
    if (!last || last.endsWith(".")) return starts;
    if (has(low, "LABELS")) return true;
    if (isDigit(last.at(-1))) return starts || !P.address.match(behind);
    if (mark.word === "I" && ["and", "than", "as"].includes(low)) return starts;
    if (P.initials.match(behind) || !starts && P.names.match(behind)) return false;
    const label = isLower(last) && isAlpha(last) && !has(low, "NOT_LABELS") && !SENTENCES.VERBS_AND_PEOPLE.search(low);
    return starts || label;
  },

  function behindATime(mark) {
    if (!has(mark.low, "TIMES")) return null;
    if (SENTENCES.AT_A_TIME.fullmatch(mark.words.join(" ")) || P.time.match(mark.behind)) return false;
    return afterAPhrase(mark);
  },

  function behindACountry(mark) {
    if (!has(mark.low, "COUNTRIES")) return null;
    if (has(mark.bare, "LINKS")) return Boolean(SENTENCES.LINK_BEGINS.match(mark.behind));
    if (mark.starts || has(mark.bare, "TITLES")) return afterAPhrase(mark);
    const placed = mark.last === "the" && mark.words.length > 1 && has(mark.words.at(-2).toLowerCase(), "PLACES");
    const subject = SENTENCES.PLURAL.match(mark.behind) || SENTENCES.WITH_VERB.match(mark.behind);
    return Boolean(placed && subject) && !has(mark.bare, "PARTS_OF_NAMES");
  },

  function behindAPhrase(mark) { return has(mark.low, "OFTEN_END") && !has(mark.low, "UNITS") ? afterAPhrase(mark) : null; },

  function behindAnAbbreviation(mark) {
    if (has(mark.low, "ABBREVIATIONS")) return mark.starts && [...mark.word].length > 1 && isUpper(mark.word);
    if (!has(mark.low, "MAY_END")) return null;
    return mark.starts || !has(mark.low, "BEFORE_NAMES") && Boolean(SENTENCES.WITH_VERB.match(mark.behind));
  },

  function behindLetters(mark) {
    if (!SENTENCES.LETTERS.fullmatch(mark.word)) return null;
    const subject = isLower(mark.word) && SENTENCES.WITH_VERB.match(mark.behind);
    return Boolean(subject) || mark.starts && !has(mark.bare, "GO_ON");
  },
];

/** After words that end phrases, such as etc. and Inc. */
function afterAPhrase(mark) {
  const first = mark.following[0];
  if ("([".includes(first) || isDigit(first)) return false;
  if (mark.low.includes(".") && (has(mark.bare, "GO_ON") || !mark.words.length)) return false;
  if (mark.starts || has(mark.low, "BEFORE_NO_NAME") || has(mark.bare, "TITLES") || '"“'.includes(first)) return true;
  return Boolean(SENTENCES.NAMED_SUBJECT.match(mark.behind)) && !has(mark.bare, "PARTS_OF_NAMES");
}
