/* Texts as the models read them: {title, sections: [{name, sentences: [{tokens, spaced}]}]}; spaced: how many words white
 * space sets apart.
 *
 * The page's papers were cut by the library. A reader's own text is cut here by simple rules: what the model writes of it
 * may differ a little from what the library would write.
 */

/** Words, numbers and marks of a text. */
const tokensOf = text => text.match(/[\p{L}\p{M}\p{N}]+(?:[.,]\p{N}+)*|[^\s\p{L}\p{M}\p{N}]/gu) ?? [];

// After . ! or ?, before a capital letter or a number.
const BETWEEN_SENTENCES = /(?<=[.!?。！？]["”’)\]]*)\s+(?=["“‘(\[]*[\p{Lu}\p{Lo}\p{N}])/u;

/** A reader's text: an empty line ends a paragraph, a line with # is a heading. Throws an Error where there is no sentence. */
function parseText(text, { lower, digits }) {
  const read = { title: "", sections: [] };
  let heading = "", paragraph = [];
  const endParagraph = () => {
    const sentences = paragraph.join(" ").split(BETWEEN_SENTENCES).map(sentence => {
      const tokens = tokensOf(lower ? sentence.toLowerCase() : sentence);
      return { tokens: digits ? tokens.map(word => word.replace(/\p{Nd}/gu, "#")) : tokens, spaced: sentence.split(/\s+/).length };
    }).filter(({ tokens }) => tokens.length);
    paragraph = [];
    if (!sentences.length) return;
    if (read.sections.at(-1)?.name !== heading) read.sections.push({ name: heading, sentences: [] });
    read.sections.at(-1).sentences = read.sections.at(-1).sentences.concat(sentences);
  };
  for (const line of text.normalize("NFC").split("\n").map(line => line.trim())) {
    const mark = line.match(/^(#{1,6})\s+(.*?)\s*#*$/);
    if (line && !mark) { paragraph.push(line); continue; }
    endParagraph();
    if (mark && mark[1] === "#" && !read.title && !read.sections.length) read.title = mark[2];
    else if (mark) heading = mark[2];
  }
  endParagraph();
  if (!read.sections.length) throw new Error("The text has no sentence: there is nothing to summarize.");
  return read;
}

/** A line for a text of another field than the model's corpus, otherwise an empty one (`lib.decoding.field`). */
function warningOf(words, { weights, least, warning }) {
  const letters = words.filter(word => /^\p{L}+$/u.test(word)).map(word => weights[word.toLowerCase()] ?? 0);
  return letters.reduce((sum, weight) => sum + weight, 0) < least * Math.max(1, letters.length) ? warning : "";
}

// ------------------------------------------------------------------------------------------------ what a model reads

const named = ({ name, sentences }) => sentences.map(sentence => ({ ...sentence, name }));
const asRows = sentences => ({ rows: sentences.map(({ tokens }) => tokens), of: sentences.map(({ name }) => name) });

/** Sentences until the budget of words is used up: the last one is cut or, of whole ones, left out. */
function cut(sentences, budget, whole = false) {
  const fitting = [];
  for (const sentence of sentences) {
    const { tokens } = sentence;
    if (budget <= 0 || whole && fitting.length && tokens.length > budget) break;
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
function readDocument({ sections }, { sections: count, section_tokens: budget, whole_sentences: whole, unit }) {
  const one = sections.length === 1, chosen = one ? sections : chooseSections(sections, count);
  const read = chosen.map(section => cut(named(section), one ? count * budget : budget, whole)).filter(own => own.length);
  if (unit !== "section") return asRows(read.flat());
  return asRows(read.map(own => ({ name: own[0].name, tokens: own.flatMap(({ tokens }) => tokens) })));
}

/** The same of an article (`lib.papers.windowed.windows.ArticleOptions`): the beginning of each section, then of all. */
function readArticle({ sections }, { source_tokens: most, section_words: each }) {
  const beginning = sentences => {
    let before = 0;
    return sentences.filter(({ spaced }) => (before += spaced) - spaced < (each ?? Infinity));
  };
  return asRows(cut(sections.flatMap(section => beginning(named(section))), most ?? Infinity));
}

/** The same for a headline (`lib.papers.read_again.headlines.HeadlineOptions`): the first sentences. */
const readHeadline = ({ sections }, { sentences, source_tokens: most }) =>
  asRows(cut(sections.flatMap(named).slice(0, sentences), most));
