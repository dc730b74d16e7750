/* A plain text in sections, as `lib.data.plain_text` and `lib.data.texts` have it; functions have their names. What they read in
 * files stays text here: pages and their heads, columns, Project Gutenberg's licence. */

const PLAIN = ruled([RULES plain_text]), LAYOUT = ruled([RULES layout]);
const BETWEEN = "\n\x1e\n";  // between the parts of a text while it is cleaned as a whole
const ENDS_PROSE = /[.?!”"]$/, GOES_ON_AFTER = /[,;:\-]$/;

/** A text's title and sections {name, sentences: [text]}. Throws an Error where there is no sentence. */
function parseText(text) {
  if (!text.isWellFormed()) throw new Error("The text holds half a character: a program has cut it there.");
  const { title, parts } = plainText(clean(text)), cleaned = clean(parts.map(([, words]) => words).join(BETWEEN)).split(BETWEEN);
  const sections = [];
  parts.forEach(([level], n) => {
    if (level) sections.push({ name: cleaned[n], sentences: [] });
    else {
      const sentences = splitSentences(cleaned[n]);
      if (sentences.length && !sections.length) sections.push({ name: "", sentences: [] });
      for (const sentence of sentences) sections.at(-1).sentences.push(sentence);
    }
  });
  const filled = sections.filter(({ sentences }) => sentences.length);
  if (!filled.length) throw new Error("The text has no sentence: there is nothing to summarize.");
  return { title: clean(title), sections: filled };
}

/** The title and the parts of a plain text: [level of a heading, or 0, words]. */
function plainText(text) {
  const found = { title: "", parts: [] }, blocks = blocksOf(withoutTables(withoutEdge(LAYOUT.SIGNATURE.sub("\n", text))).split("\n"));
  const isMarked = blocks.some(([level]) => level);
  blocks.forEach(([level, block], n) => {
    const following = (blocks[n + 1]?.[1] ?? []).join(" "), words = block.join(" ");
    if (!isMarked && following) {
      if (PLAIN.is_section_name.fullmatch(words) || isNumberedHeading(words, following)) level = 2;
      else if (n === 0 && block.length === 1 && isTitle(words, following)) level = 1;
    }
    if (level) addHeading(found, fields(words).join(" "), level);
    else for (const lines of withoutMarks(block)) if (strip(lines) && !PLAIN.ORNAMENT.fullmatch(lines)) found.parts.push([0, lines]);
  });
  return found;
}

function addHeading(found, words, level) {
  if (!words) return;
  const isTitle = !found.title && !found.parts.length;
  if (isTitle && (level === 1 || !PLAIN.is_section_name.fullmatch(words))) found.title = words;
  else found.parts.push([level, words]);
}

/** Headings with their levels, and paragraphs in lines with level 0. */
function blocksOf(lines) {
  const blocks = [];
  let block = [];
  for (const line of [...lines.map(strip), ""]) {
    const marked = PLAIN.MARKED.fullmatch(line);
    if (!marked && line && !PLAIN.ORNAMENT.fullmatch(line)) {
      block.push(fields(line).join(" "));
      continue;
    }
    const isUnderlined = !marked && block.length === 1 && PLAIN.UNDERLINE.fullmatch(line) && canBeHeading(block[0]);
    blocks.push([isUnderlined ? (line[0] === "=" ? 1 : 2) : 0, block]);
    if (marked) blocks.push([marked[1].length, [marked[2]]]);
    block = [];
  }
  const parts = [];
  for (let [level, lines] of blocks) {
    while (lines.length > 1 && beginsWithHeading(lines, !parts.length)) {
      const [first] = lines;
      parts.push([0, [first]]);
      lines = lines.slice(1);
      if (isUpper(first) && isVerse(lines)) {
        for (const line of lines) parts.push([0, [line]]);
        lines = [];
      }
    }
    if (lines.length) parts.push([level, lines]);
  }
  return parts;
}

/** Whether the first line of a block is a heading, which does not go on in the second one though there was room. */
function beginsWithHeading([first, ...rest], isFirst) {
  const width = widest(rest), [next] = rest, isProse = ENDS_PROSE.test(rest.at(-1));
  if (first.length + 1 + fields(next)[0].length > Math.max(width, PLAIN.COLUMN_WIDTH) || GOES_ON_AFTER.test(first)) return false;
  if ((isUpper(first) && first.length > 2) || PLAIN.is_section_name.fullmatch(first)) return !isUpper(next) && !(isLower(next[0]) && isProse);
  const numbered = PLAIN.NUMBERED_LINE.fullmatch(first);
  if (numbered) {
    const isAbove = isUpper(next[0]) || next.startsWith(`${numbered.groups.number}.`);
    return isProse && isAbove && heads([first, ...rest])[0] !== "item";
  }
  const isWrapped = rest.length > 1 && rest.slice(0, -1).every(line => 10 * line.length > 7 * width);
  const isShort = 2 * first.length <= width && PLAIN.TITLE.fullmatch(first);
  const isAbove = (isFirst && isWrapped) || (next.length >= PLAIN.UNWRAPPED_WIDTH && isProse);
  return Boolean(isAbove && isShort && isUpper(next[0]));
}

/** Whether all lines begin with a capital, one of them within a sentence and with a word that is no name. */
function isVerse(lines) {
  const within = lines.slice(1).filter((line, n) => !/[.?!:”"]$/.test(lines[n]));
  return lines.every(([first]) => isUpper(first)) && within.some(line => beginsSentence(line) && !line.startsWith("I "));
}

const canBeHeading = line => !/[.,;:]$/.test(line) && !isLower(line[0]);
const isNumberedHeading = (line, following) => PLAIN.NUMBERED.fullmatch(line) && !/[.,;:]$/.test(line) && !isUpper(following);
const isTitle = (line, following) =>
  fields(following).length > 7 && ENDS_PROSE.test(following) && fields(line).length <= 15 && PLAIN.TITLE.fullmatch(line);

/** The items and the other parts of a paragraph, without the marks of items and quotations. */
function withoutMarks(lines) {
  const parts = [[]], begins = itemBegins(lines), begun = heads(lines), width = widest(lines);
  let wasQuoted = false, isItem = false;
  lines.forEach((line, n) => {
    const quotation = PLAIN.QUOTATION.match(line), isQuoted = Boolean(quotation);
    let words = quotation ? line.slice(quotation[0].length) : line;
    if (PLAIN.ORNAMENT.fullmatch(words)) words = "";
    const isBehind = isItem && (begun[n] || isApart(lines[n - 1] ?? "", words, width));
    if (begins[n] || isBehind || isQuoted !== wasQuoted) {
      parts.push([]);
      isItem = begins[n];
    }
    if (begins[n] && !PLAIN.AMOUNT.match(words)) words = words.replace(PLAIN.BULLET.any, "");
    const part = parts.at(-1);
    if (words && isItem && part.length && !/[\-\u2010]$/.test(part.at(-1))) part.push(joinLines([part.pop(), words]));
    else if (words) part.push(words);
    else {
      parts.push([]);
      isItem = false;
    }
    wasQuoted = isQuoted;
  });
  return parts.filter(part => part.length).map(part => part.join("\n"));
}

/** Of each line of a paragraph whether it begins an item. */
function itemBegins(lines) {
  const signs = lines.map(signOf), counts = new Map();
  for (const key of signs.flatMap(sign => [sign, `kind ${sign[0]}`])) counts.set(key, (counts.get(key) ?? 0) + 1);
  const sure = new Set(signs.filter((sign, n) => {
    const isInList = (lines[n - 1] ?? ":").endsWith(":") && (sign === "-" || counts.get(`kind ${sign[0]}`) > 1);
    return sign && (counts.get(sign) > 1 || sign === "•" || isInList);
  }).map(([first]) => first));
  return signs.map(([first]) => sure.has(first));
}

/** The kind of sign at the head of a line: of an item or an amount. */
function signOf(line) {
  const words = line.slice(PLAIN.QUOTATION.match(line)?.[0].length ?? 0), bullet = PLAIN.BULLET.match(words);
  if (!bullet) return "";
  const isAmount = PLAIN.AMOUNT.match(words), kind = "-*+".includes(bullet[1]) ? "-" : "•";
  return isAmount && bullet[1] === "+" ? "+5" : kind + (isAmount ? "5" : "");
}

/** A text without the bars at the heads of its lines, if most lines begin with one. */
function withoutEdge(text) {
  const filled = text.split("\n").filter(strip).length;
  return 2 * LAYOUT.EDGE.findall(text).length > filled ? LAYOUT.EDGE.sub(([, line]) => line, text) : text;
}

/** A text in which each row of a table is a paragraph. A table of numbers is left out. */
function withoutTables(text) {
  if (!/[\t|]/.test(text)) return text;
  const lines = [];
  let rows = [];
  for (const line of [...text.split("\n"), ""]) {
    const cells = cellsOf(line), isRule = rows.length && strip(line) && LAYOUT.RULE.fullmatch(line);
    if (isRule) continue;
    if (rows.length && cells.length !== rows.at(-1).length) {
      lines.push(tableOf(rows).join("\n"));
      rows = [];
    }
    if (cells.length > 1) rows.push(cells);
    else lines.push(line);
  }
  return lines.slice(0, -1).join("\n");
}

function cellsOf(line) {
  const inner = strip(line).replace(/^\|+|\|+$/g, ""), between = inner.includes("\t") ? "\t" : "|";
  return inner.includes(between) ? inner.split(between).map(strip) : [];
}

/** Lines of a table's paragraphs; a single line is none. */
function tableOf(rows) {
  if (rows.length === 1) return [rows[0].join(" | ")];
  const filled = rows.flat().filter(Boolean);
  if (2 * filled.filter(cell => LAYOUT.NUMBER.fullmatch(cell)).length > filled.length) return [""];
  const joined = row => row.filter(Boolean).reduce((text, cell) => `${text}${LAYOUT.ENDS.search(text) ? "" : ","} ${cell}`);
  return ["", ...rows.flatMap(row => [row.some(Boolean) ? joined(row) : "", ""])];
}
