/* Texts as the models read them: {title, sections: [{name, sentences: [{tokens, shown, spaced}]}]}; shown: the tokens as the
 * text writes them, each with the space before it; spaced: how many words white space sets apart.
 *
 * The page's papers were cut by the library, a reader's own text is cut here by its rules.
 */

/** A reader's text. Throws an Error where there is no sentence. */
function ownText(text, options) {
  const { title, sections } = parseText(text);
  return { title, sections: sections.map(({ name, sentences }) => ({ name, sentences: sentences.map(sentence => cutSentence(sentence, options)) })) };
}

/** A sentence as `Options.words` and `Options.surfaces` have it. digits: whether they are written as #; undefined but for headlines. */
function cutSentence(sentence, { lower, digits }) {
  const text = clean(sentence), plain = digits ? text.replaceAll("#", "0") : text, spans = wordSpans(lower ? lowered(plain) : plain);
  const isUnknown = word => digits !== undefined && word === "<unk>";
  return {
    tokens: spans.map(([word]) => isUnknown(word) ? "[UNK]" : digits ? word.replace(/\p{Nd}/gv, "#") : word),
    shown: surfaces(text, spans), spaced: fields(sentence).length,
  };
}

/** A template in which {names} are replaced. */
const filled = (template, values) => template.replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** Lines for a text that is too short or too strange for the model, as `lib.summarize.remarks` has them. words: those that are
 *  read; known: those that the model knows. */
function remarksOn(words, known, { field, remarks, decode: { min_length: shortest } }) {
  const lines = [], counted = words.filter(isWord), strange = counted.filter(word => !known.has(word)).length / Math.max(1, counted.length);
  if (words.length < shortest) lines.push(filled(remarks.short, { length: words.length, unit: "words and marks", shortest }));
  if (field && isUnlike(words, field)) lines.push(field.warning);
  else if (strange > remarks.strange) lines.push(filled(remarks.unknown, { share: strange.toLocaleString("en", { style: "percent", roundingMode: "halfEven" }), corpus: remarks.corpus }));
  return lines;
}

/** Whether a text is of another field than the model's corpus (`lib.decoding.field`). */
function isUnlike(words, { weights, least }) {
  const letters = tokenize(lowered(words.join(" "))).filter(isAlpha);
  return letters.reduce((sum, word) => sum + (weights[word] ?? 0), 0) < least * Math.max(1, letters.length);
}

const named = ({ name, sentences }) => sentences.map(sentence => ({ ...sentence, name }));

/** Rows, each of a group of sentences: their words as they are read and as they are `shown`, and the section that each is
 *  `of`; read: of each sentence, by its `shown`, its row and how many of its words are read. */
function asRows(groups) {
  const rowsOf = words => groups.map(group => group.flatMap(words));
  return {
    rows: rowsOf(({ tokens }) => tokens), shown: rowsOf(({ tokens, shown }) => shown.slice(0, tokens.length)), of: groups.map(([{ name }]) => name),
    read: new Map(groups.flatMap((group, j) => group.map(({ shown, tokens }) => [shown, [j, tokens.length]]))),
  };
}

const asSentences = sentences => asRows(sentences.map(sentence => [sentence]));

/** The parts of a text that are not read: {row, name, text}: after which row they are, and in which section. */
function unreadOf({ sections }, read) {
  let row = -1;
  return sections.flatMap(({ name, sentences }) => sentences.flatMap(({ shown }) => {
    const [own, count] = read.get(shown) ?? [row, 0];
    row = own;
    return count < shown.length ? [{ row, name, text: shown.slice(count).join("").trim() }] : [];
  }));
}

/** Sentences until the budget of words is used up: the last one is cut. */
function cut(sentences, budget) {
  const fitting = [];
  for (const sentence of sentences) {
    const { tokens } = sentence;
    if (budget <= 0) break;
    if (tokens.length) fitting.push({ ...sentence, tokens: tokens.slice(0, budget) });
    budget -= tokens.length;
  }
  return fitting;
}

/** The sections that stay (`lib.data.sections`): the first with "intro" in its name, those after it, the last "conclu". */
function chooseSections(sections, count) {
  const names = sections.map(({ name }) => name.toLowerCase());
  const first = Math.max(0, names.findIndex(name => name.includes("intro")));
  const conclusion = names.findLastIndex(name => name.includes("conclu")), last = conclusion < 0 ? names.length - 1 : conclusion;
  const span = first > last ? sections : sections.slice(first, last + 1);
  if (span.length <= count) return span;
  return count > 1 ? [...span.slice(0, count - 1), span.at(-1)] : span.slice(0, 1);
}

/** Rows that are read of a paper, and the section of each (`lib.papers.mem2mem.sections.CohanOptions`). */
function readDocument({ sections }, { sections: count, section_tokens: budget, unit }) {
  const one = sections.length === 1, chosen = one ? sections : chooseSections(sections, count);
  const read = chosen.map(section => cut(named(section), one ? count * budget : budget)).filter(own => own.length);
  return unit === "section" ? asRows(read) : asSentences(read.flat());
}

/** The same of an article (`lib.papers.windowed.windows.ArticleOptions`): the beginning of each section, then of all. */
function readArticle({ sections }, { source_tokens: most, section_words: each }) {
  const beginning = sentences => {
    let before = 0;
    return sentences.filter(({ spaced }) => (before += spaced) - spaced < (each ?? Infinity));
  };
  return asSentences(cut(sections.flatMap(section => beginning(named(section))), most ?? Infinity));
}

/** The same for a headline (`lib.papers.read_again.headlines.HeadlineOptions`): the first sentences. */
const readHeadline = ({ sections }, { sentences, source_tokens: most }) =>
  asSentences(cut(sections.flatMap(named).slice(0, sentences), most));

const HIDDEN = { "<dig>": "[number]", "<num>": "[number]", "<cit>": "[citation]", "@xcite": "[citation]", "@formula": "[formula]" };
const NO_SPACE_BEFORE = /^(?:[.,;:?!%)\]}’”…]|(?:n?['’])\p{L}{1,2})$/u, NO_SPACE_AFTER = /^[([{“‘]$/, INSIDE = /^[-/^_‐‑]$/;

/** The form that each word mostly has in a text. A sentence's first word counts only if there is no other. */
function formsOf({ rows, shown }) {
  const counts = new Map();
  rows.forEach((words, j) => words.forEach((word, i) => {
    const own = shown[j][i].trim(), isName = i > 0 || own === "I" || /[\p{Lu}\d]/u.test(own.slice(1));
    const forms = counts.get(word) ?? counts.set(word, new Map()).get(word), form = isName ? own : own.toLowerCase();
    forms.set(form, (forms.get(form) ?? 0) + (i ? 1 : 0.001));
  }));
  return new Map([...counts].map(([word, forms]) =>
    [word, word.includes("#") && forms.size > 1 ? "[number]" : [...forms].sort((a, b) => b[1] - a[1])[0][0]]));
}

/** Words of a summary as people write them, each with the space before it, by simpler rules than `lib.decoding.readable`. */
function readable(words, forms) {
  const isInside = t => INSIDE.test(words[t]) && /[\p{L}\p{N}>#]$/u.test(words[t - 1]) && /^[\p{L}\p{N}<#]/u.test(words[t + 1]);
  let begins = true;
  return words.map((word, t) => {
    let form = HIDDEN[word] ?? forms.get(word) ?? word.replace(/#+(?:[.,:]#+)*/g, "[number]");
    if (begins && /^\p{Ll}+$/u.test(form)) form = form[0].toUpperCase() + form.slice(1);
    if (/^[\p{L}\p{N}[]/u.test(form)) begins = false;
    if (/^[.?!]$/.test(word) && !/^\p{L}$/u.test(words[t - 1])) begins = true;
    const joined = !t || NO_SPACE_BEFORE.test(word) || NO_SPACE_AFTER.test(words[t - 1]) || isInside(t) || isInside(t - 1);
    return joined ? form : ` ${form}`;
  });
}
