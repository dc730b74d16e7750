/* Plain text and Markdown as a document, and what Mem2Mem reads of it: `lib.data.plain_text`,
 * `lib.papers.mem2mem.sections` and `lib.data.vocabulary`. Each function is the one of that name. */

const SIGNS = { titled: re`\S`, number: re`((?:\d{1,3}\.)*\d{1,3})\.? +\S` };
const LONGEST = 10;  // words of a heading

/** {title, names, sections} of a text; sections are lists of sentences. A stop after every hundred sentences.
 *  Throws an Error with one line for people where there is nothing to read. */
function* parseText(text) {
  if (text.includes("\0")) throw new Error("The text holds a null byte.");
  const parts = { title: "", names: [], sections: [] };
  let heading = "", sentences = 0;
  const blocks = withHeadings([...blocksOf(splitLines(clean(text)).map(rstrip))]);
  for (const block of blocks) {
    if (!block.read) continue;
    if (block.level) {
      const name = plainLine(block.lines[0]);
      if (block.level === 1 && !parts.title && !parts.names.length) parts.title = name;
      else { heading = name; parts.names.push(name); parts.sections.push([]); }
      continue;
    }
    for (const unit of unitsOf(block.lines)) {
      for (const sentence of sentencesOf(plainLine(unit))) {
        if (!parts.sections.length) { parts.names.push(heading); parts.sections.push([]); }
        parts.sections.at(-1).push(sentence);
        if (++sentences % 100 === 0) yield sentences;
      }
    }
  }
  const filled = parts.sections.map((section, i) => i).filter(i => parts.sections[i].length);
  if (!filled.length) throw new Error("The text has no sentence: there is nothing to summarize.");
  return { title: parts.title, names: filled.map(i => parts.names[i]), sections: filled.map(i => parts.sections[i]) };
}

// ---------------------------------------------------------------------------------------------------------- blocks

const block = (lines, level = 0, read = true) => ({ lines, level, read });

function* blocksOf(lines) {
  const fences = {};
  for (const kind of ["```", "~~~"])
    fences[kind] = lines.flatMap((line, n) => PLAIN.FENCE_END.fullmatch(line) && line.includes(kind) ? [n] : []);
  let paragraph = [], number = 0;
  while (number < lines.length) {
    const line = lines[number], below = lines[number + 1] ?? "", end = endOfCode(lines, number, fences);
    const marked = !paragraph.length || endsLine(paragraph.at(-1)) ? PLAIN.MARKED.fullmatch(line) : null;
    const underlined = !paragraph.length && isUnderlined(line, below);
    if (line && !(end || marked || underlined)) { paragraph.push(line); number++; continue; }
    if (paragraph.length) { yield block(paragraph); paragraph = []; }
    if (end) yield block(lines.slice(number + 1, end), 0, false);
    else if (marked) yield block([PLAIN.END_MARKS.sub("", marked.groups.name)], marked.groups.marks.length);
    else if (underlined) yield block([strip(line)], below[0] === "=" ? 1 : 2);
    number = end ? end + 1 : number + (underlined ? 2 : 1);
  }
  if (paragraph.length) yield block(paragraph);
}

const endsLine = line => Boolean(PLAIN.ENDED.search(line) || PLAIN.RULE.fullmatch(line));

function endOfCode(lines, number, fences) {
  const begin = PLAIN.FENCE.match(lines[number]);
  if (!begin || number + 1 === lines.length || !lines[number + 1]) return 0;
  return fences[begin.groups.kind].find(n => n > number) ?? 0;
}

function isUnderlined(line, below) {
  if (!PLAIN.UNDERLINE.fullmatch(below) || !isWord(line) || PLAIN.ITEM.fullmatch(line)) return false;
  if ("=-".includes(below[0])) return below !== "--";
  return Math.abs([...strip(line)].length - [...below].length) <= 2;
}

// ---------------------------------------------------------------------------------- headings of a text without marks

function withHeadings(blocks) {
  if (blocks.some(b => b.level)) return blocks;
  const lines = new Map();
  blocks.slice(0, -1).forEach((b, n) => { const line = headingLine(b); if (line) lines.set(n, line); });
  const known = new Set([...lines].filter(([, line]) =>
    isSectionName(line[0]) || PLAIN.PART.fullmatch(line[0])).map(([n]) => n));
  const headings = new Set(known);
  for (const n of known) if (known.has(n - 1) && known.has(n + 1)) for (const k of [n - 1, n, n + 1]) headings.delete(k);
  for (const n of numberedHeadings(blocks, lines, known)) headings.add(n);
  return blocks.map((b, n) => headings.has(n) ? block(b.lines, 2) : b);
}

function numberedHeadings(blocks, lines, known) {
  const numbers = new Map();
  for (const n of lines.keys()) { const number = numberOf(blocks[n]); if (number) numbers.set(n, number); }
  const outline = new Set([...numbers.values()].map(String)), headings = [], items = new Set();
  const ofAReport = [...known].some(n => numbers.get(n)?.length === 1);
  for (const [n, number] of numbers) {
    const before = String([...number.slice(0, -1), number.at(-1) - 1]), below = numberOf(blocks[n + 1]);
    if (items.has(before) || below && below.length === number.length) items.add(String(number));
    else if ((number.at(-1) === 1 || outline.has(before)) && (ofAReport || number.length > 1)
      && isUpper([...lines.get(n).groups.name][0])) headings.push(n);
  }
  return headings;
}

function headingLine({ read, lines }) {
  const line = read && lines.length === 1 ? strip(lines[0]) : "";
  if (!line || splitWords(line).length > LONGEST || ".,;!?".includes(line.at(-1))) return null;
  return PLAIN.NAMED.fullmatch(line);
}

function isSectionName(line) {
  const name = PLAIN.NAMED.fullmatch(strip(line));
  return Boolean(name && PLAIN.KNOWN_NAME.fullmatch(name.groups.name));
}

function numberOf({ lines }) {
  const begin = lines.length ? SIGNS.number.match(strip(lines[0])) : null;
  return begin && begin[1].split(".").map(Number);
}

// ------------------------------------------------------------------------------------------------------ paragraphs

function unitsOf(lines) {
  const signs = new Map(), items = lines.map(line => PLAIN.ITEM.fullmatch(line));
  for (const item of items) if (item) signs.set(item.groups.mark, (signs.get(item.groups.mark) ?? 0) + 1);
  const units = [[]], kinds = new Set();
  let above = "";
  lines.forEach((line, number) => {
    const item = items[number], rule = Boolean(PLAIN.RULE.fullmatch(line));
    let kind = item ? kindOf(item.groups, signs) : "";
    if (number && !kinds.has(kind) && !endsLine(lines[number - 1])) kind = "";
    const goesOn = kind === ">" && above === ">" && item?.groups.rest;
    if (rule || kind && !goesOn || above === ">" && !kind) units.push([]);
    const text = item && (kind === ">" || kind === "-") ? item.groups.rest ?? "" : line;
    units.at(-1).push(rule ? "" : strip(text));
    above = kind || (rule || above === ">" ? "" : above);
    kinds.add(kind || above);
  });
  return units.map(unit => unit.filter(Boolean).join(" ")).filter(Boolean);
}

function kindOf({ mark, rest }, signs) {
  if (".)".includes(mark.at(-1))) return "1";
  if (signs.get(mark) === 1 && PLAIN.AMOUNT.match(rest ?? "")) return "";
  return mark.at(-1) === ">" ? ">" : "-";
}

function plainLine(line) {
  for (const [pattern, replacement] of PLAIN.MARKUP) line = pattern.sub(replacement.replace(/\\(\d)/g, "$$$1"), line);
  return splitWords(line).join(" ");
}

// ------------------------------------------------------------------------------------------------ what a model reads

/** Numbers of the sections that stay: the first with "intro" in its name, those after it, the last with "conclu". */
function chooseSections(names, count) {
  const low = names.map(name => name.toLowerCase());
  const first = Math.max(0, low.findIndex(name => name.includes("intro")));
  const conclusion = low.findLastIndex(name => name.includes("conclu")), last = conclusion < 0 ? low.length - 1 : conclusion;
  const span = names.map((_, i) => i).filter(i => first > last || first <= i && i <= last);
  if (span.length <= count) return span;
  return count > 1 ? [...span.slice(0, count - 1), span.at(-1)] : span.slice(0, 1);
}

/** Words of a sentence of which somebody has set them apart by spaces. */
const spacedWords = sentence =>
  splitWords(clean(sentence)).flatMap(word => WORDS.SYMBOL.fullmatch(word) ? tokenize(word) : [word]);

/** Sentences in words until the budget is used up: the last one is cut or, of whole ones, left out. */
function cutSentences(sentences, budget, { lower, whole_sentences: whole }, cut) {
  const rows = [];
  for (const sentence of sentences) {
    const words = cut(lower ? lowered(sentence) : sentence), fitting = words.slice(0, budget);
    if (!fitting.length) { if (budget <= 0) break; continue; }
    if (whole && rows.length && fitting.length < words.length) break;
    rows.push(fitting);
    budget -= fitting.length;
    if (budget <= 0) break;
  }
  return rows;
}

/** What is read of a document: `rows` of words, what the encoder reads before it reads the document (sentences, or
 *  whole sections), and the name of the section of each. options: of `CohanOptions`. */
function readDocument({ names, sections, tokenised = false }, options) {
  const one = sections.length === 1, chosen = one ? [0] : chooseSections(names, options.sections);
  const budget = one ? options.sections * options.section_tokens : options.section_tokens;
  const rows = [], of = [];
  for (const i of chosen) {
    let own = cutSentences(sections[i], budget, options, tokenised ? spacedWords : tokenize);
    if (options.unit === "section" && own.length) own = [own.flat()];
    for (const words of own) { rows.push(words); of.push(names[i]); }
  }
  return { rows, of };
}

/** The same of an article, with a stop after every hundred sentences: options of `ArticleOptions`. */
function* readArticle({ names, sections, tokenised = false }, { source_tokens: most, section_words: each, lower }) {
  const rows = [], of = [];
  let budget = most ?? Infinity;
  for (const [i, section] of sections.entries()) {
    for (const sentence of beginning(section, each ?? Infinity)) {
      if (budget <= 0) return { rows, of };
      for (const words of cutSentences([sentence], budget, { lower }, tokenised ? spacedWords : tokenize)) {
        rows.push(words);
        of.push(names[i]);
        budget -= words.length;
        if (rows.length % 100 === 0) yield rows.length;
      }
    }
  }
  return { rows, of };
}

/** Whole sentences until there are so many words, counted by white space. */
function beginning(sentences, words) {
  let before = 0;
  return sentences.filter(sentence => {
    const stays = before < words;
    before += stays ? splitWords(sentence).length : 0;
    return stays;
  });
}

/** The same of a text for a headline: its first sentences, digits as #. options: of `HeadlineOptions`. */
function readHeadline({ names, sections, tokenised = false }, { sentences, source_tokens: most, lower, digits }) {
  const cut = tokenised ? spacedWords : tokenize, first = sections.flatMap((section, i) => section.map(sentence => [sentence, names[i]]));
  const rows = [], of = [];
  let budget = most;
  for (const [sentence, name] of first.slice(0, sentences)) {
    if (budget <= 0) break;
    const [words] = cutSentences([digits ? sentence.replaceAll("#", "0") : sentence], budget, { lower }, cut);
    if (!words) continue;
    rows.push(words.map(word => word === "<unk>" ? "[UNK]" : digits ? word.replace(/\p{Nd}/gv, "#") : word));
    of.push(name);
    budget -= words.length;
  }
  return { rows, of };
}
