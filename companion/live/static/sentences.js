/* Sentences of a plain text, as `lib.data.sentences` and `lib.data.line_heads` have them; functions have their names. */

const SENTENCES = ruled([RULES sentences]), HEADS = ruled([RULES line_heads]);
const LINE_BREAK = /\r\n|[\n-\r\x1c-\x1e\x85\u2028\u2029]/v;

const splitSentences = text => units(text).flatMap(unit => sentencesOf(unit).map(strip).filter(Boolean));

const widest = lines => maximum(lines.map(({ length }) => length));

/** Each turn, each item and each other paragraph in one line; or the lines of a paragraph that is no prose. */
const units = text => SENTENCES.BLANK_LINE.split(text).flatMap(paragraph => {
  const lines = paragraph.split(LINE_BREAK).map(strip).filter(Boolean);
  if (lines.length < 2) return lines;
  const found = [], begun = heads(lines), width = widest(lines);
  let group = [], kind = "";
  lines.forEach((line, n) => {
    const begins = begun[n];
    if (begins || (kind === "item" && isApart(lines[n - 1] ?? "", line, width))) {
      found.push(joined(group, kind));
      [group, kind] = [[], begins];
    }
    if (begins === "turn" && isHead(line)) found.push([line]);
    else group.push(line);
  });
  return [...found.flat(), ...joined(group, kind)];
});

/** Lines as one if they are an item or prose, otherwise one by one. */
function joined(lines, kind) {
  if (!lines.length) return [];
  const small = lines.slice(1).filter(([first]) => isLower(first)).length, hasCase = isUpper(lines[0][0]);
  const isProse = lines.some(line => SENTENCES.LINE_END.search(line) || SENTENCES.WITHIN.search(line));
  if (kind === "item" || isProse || (hasCase && small > 0 && 2 * small >= lines.length - 1)) return [joinLines(lines)];
  const parts = [];
  for (const line of lines) {
    const goesOn = parts.at(-1)?.at(-1).endsWith(",") || (hasCase && isLower(line[0]));
    if (parts.length && goesOn) parts.at(-1).push(line);
    else parts.push([line]);
  }
  return parts.map(joinLines);
}

/** Sentences of a text without line ends, each with the space after it. */
function sentencesOf(text) {
  const found = [], hasCase = [...text.matchAll(SENTENCES.BEGIN.all)].some(([, first]) => isUpper(first)), items = itemsOf(text);
  let start = 0;
  const end = place => {
    found.push(text.slice(start, place));
    start = place;
  };
  const endAtItems = place => {
    while (items[0] <= place) {
      const item = items.shift();
      if (item > start) end(item);
    }
  };
  for (const match of text.matchAll(SENTENCES.MARK.all)) {
    endAtItems(match.index);
    if (endsSentence(match, text, start, hasCase)) end(match.index + match[0].length);
  }
  endAtItems(text.length);
  return [...found, text.slice(start)];
}

/** Where the items of a list begin, in a text that begins with the first one. */
function itemsOf(text) {
  const [first, ...others] = text.matchAll(SENTENCES.ITEMS.all);
  if (first?.index !== 0) return [];
  const rank = ({ groups: { number, letter } }) => number ? Number(number) : letter.codePointAt(0);
  const style = ({ groups: { bullet, close, end } }) => `${Boolean(bullet)} ${close} ${end}`;
  let last = first;
  return others.flatMap(item => {
    if (rank(item) !== rank(last) + 1 || style(item) !== style(last)) return [];
    last = item;
    return [item.index];
  });
}

/** Whether a mark ends the sentence that begins at `start`. */
function endsSentence({ groups, index, 0: all }, text, start, hasCase) {
  const { mark, close, space } = groups, end = index + all.length, S = SENTENCES;
  const before = text.slice(Math.max(start, index - S.WINDOW), index), behind = text.slice(end, end + S.WINDOW);
  const earlier = fields(before), token = earlier.pop() ?? "", isSpaced = SPACE.test(before.slice(-1));
  let word = S.QUOTES.split(token).at(-1);
  if (S.STOPS_BEFORE_ANY.has(mark[0])) return !S.GOES_ON_AFTER_STOP.has(behind[0]);
  if (!space) {
    if (!word || word.endsWith("%") || close || "?!".includes(mark)) return Boolean(S.CAPITAL_WORD.match(behind));
    return word.length > 2 && isLower(word) && isAlpha(word) && (beginsSentence(behind, true) || isNoModule(word, behind));
  }
  if (isSpaced) {  // tokenised text: the word and the mark are apart
    const isLastDot = S.THREE_DOTS.search(before) && isUpper(behind[0]);
    if (!token || (/[.?!;]$/.test(token) && !isLastDot) || S.GOES_ON.match(behind) || (hasCase && isLower(behind[0]))) return false;
    if (mark === "…" || S.ADDRESS.search(before)) return false;
    if (/^\p{Nd}/v.test(behind) && S.BEFORE_DIGITS.fullmatch(word)) return false;
    const letters = S.SPACED_LETTERS.search(before);
    if (letters) word = letters[0].replaceAll(" ", "");
  } else {
    const opening = S.OPENING.match(behind);
    if (!opening || (hasCase && isLower(opening.groups.first) && !S.SMALL_NAME.match(behind))) return false;
  }
  if (close && S.SOURCE.match(behind)) return false;
  if (mark !== "." && S.CLOSING.search(close) && S.SPEAKER.match(behind)) {
    const first = firstWord(behind).toLowerCase();
    return first !== "i" && S.STARTERS.has(first);
  }
  if (mark !== "." || !word) return true;
  if (["a.m", "p.m"].includes(word.toLowerCase()) && S.TITLE.match(behind)) return !S.AT_A_TIME.search(earlier.join(" "));
  if (before.length < 20 && S.ITEM.fullmatch(before)) return false;  // the number of a section or of an item in a list
  if (before.length < 10 && S.NUMBERED_INITIAL.fullmatch(before)) return beginsSentence(behind, hasCase);
  return endsAfter(word, (earlier.at(-1) ?? "").toLowerCase(), behind, hasCase, isSpaced);
}

/** Whether a full stop after a word ends the sentence. isSpaced: a space is before the stop. */
function endsAfter(word, previous, behind, hasCase, isSpaced) {
  const S = SENTENCES, low = word.toLowerCase(), isAny = words => words.has(low) || words.has(word);
  const isEtc = S.ETC.has(low) || S.ETC.has(previous + low), isLetter = [...word].length === 1 && isAlpha(word);
  const isDigits = /^\p{Nd}+$/v.test(word), begins = () => beginsSentence(behind, hasCase);
  if (isAny(S.ABBREVIATIONS) && !(isLetter && isUpper(word))) return false;
  if (isUpper(word[0]) && S.OF_CITED_CASE.match(behind)) return false;
  if (word === "Fed" && S.BEFORE_ABBREVIATION.match(behind)) return false;
  if (word === "MM" && S.BEFORE_MESSIEURS.has(previous)) return false;
  if (word.length < 5 && S.NUMBER_SIGN.match(behind)) return false;
  if ((S.BEFORE_NUMBERS.has(low) || (low.endsWith("str") && low.length > 5)) && S.NUMBER.match(behind)) return false;
  const isAfterDigit = /\p{Nd}$/v.test(previous), isAmount = isAfterDigit && (S.UNIT.fullmatch(low) || S.DOTTED.fullmatch(low));
  const mayEnd = isAny(S.MAY_END) || S.DOTTED.fullmatch(word);
  if ((isEtc || ((isAmount || mayEnd) && !isSpaced)) && !hasCase) return S.LOWER_STARTERS.has(firstWord(behind));
  if (isDigits && S.GERMAN_MONTH.match(behind)) return false;
  if (isDigits && word.length < 4 && S.BEFORE_ORDINALS.has(previous)) return begins();
  if (isEtc) return isAlpha(behind[0]);
  if (isAfterDigit && S.UNIT.fullmatch(low)) return behind[0] !== "(" && !S.SMALLER.match(behind);
  if (isLetter && S.SPACED_LETTER.match(behind)) return false;
  if (isLetter || S.LIKE_INITIALS.fullmatch(low)) return S.LABELS.has(previous) || begins();
  return !mayEnd || begins() || Boolean(S.SUBJECT.match(behind));
}

const isNoModule = (word, behind) => word.length > 9 && !SENTENCES.MODULES.has(word) && Boolean(SENTENCES.CAPITAL_WORD.match(behind));

const firstWord = text => SENTENCES.WORD.search(text)?.[0] ?? "";

/** Whether a text begins with a word that begins sentences and is no name. */
function beginsSentence(text, hasCase = true) {
  if (SENTENCES.INITIAL.match(text)) return false;
  const word = firstWord(text), isTitle = /^\p{Lu}\p{Ll}*$/v.test(word);
  return (SENTENCES.STARTERS.has(word.toLowerCase()) && (isTitle || !hasCase)) || Boolean(SENTENCES.SHORT_WORD.match(text));
}

/** Of each line of a paragraph what it begins: "turn", "item" or "". */
function heads(lines) {
  const turns = lines.map(line => HEADS.TURN.match(line)), forms = new Map(), counts = new Map();
  const count = (into, key) => into.set(key, (into.get(key) ?? 0) + 1);
  for (const turn of turns) if (turn?.groups.sure) count(forms, turn[0].replace(/\p{Nd}+/gv, "0"));
  const marked = turns.filter(Boolean).length;
  const areTurns = marked > 1 && (2 * marked >= lines.length || maximum([...forms.values()]) > 1);
  const places = lines.map(placesOf);
  for (const [kind, number] of places.flat()) count(counts, `${kind} ${number}`);
  return lines.map((line, n) => {
    if (places[n].some(([kind, number]) => counts.has(`${kind} ${number - 1}`) || counts.has(`${kind} ${number + 1}`))) return "item";
    return (turns[n] && areTurns) || isHead(line) ? "turn" : "";
  });
}

/** Whether a line is a speaker's name and a time, and nothing else. */
const isHead = line => Boolean(HEADS.ONLY_A_HEAD.fullmatch(line));

/** Whether a line behind an item begins with a capital, though its first word had room in the line before. */
const isApart = (before, line, width) => {
  const [first] = fields(line);
  return first !== undefined && before.length + 1 + first.length <= width && isUpper(line[0]);
};

const ROMAN = { i: 1, v: 5, x: 10 };

/** The kind of list and the place in it that a line may have. */
function placesOf(line) {
  const { open, level, number, letters, close } = HEADS.ITEM.match(line)?.groups ?? {};
  if (level === undefined || !(close || level || ![undefined, "(", "["].includes(open))) return [];
  const style = `${open}${level}${close}`;
  if (number) return [[style, Number(number)]];
  const low = letters.toLowerCase(), kind = style + (isUpper(letters) ? "A" : "a"), values = [...low].map(letter => ROMAN[letter]);
  const places = low.length === 1 ? [[`${kind} letter`, low.codePointAt(0)]] : [];
  if (values.includes(undefined)) return places;
  return [...places, [`${kind} Roman`, values.reduce((sum, a, n) => sum + (a < (values[n + 1] ?? 0) ? -a : a), 0)]];
}
