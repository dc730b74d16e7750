/* Symbols and words by their ids, as `lib.data.vocabulary` has them. */

const UNK = 1, BOS = 2, EOS = 3;

/** The vocabulary with copy ids (`lib.data.vocabulary.Vocabulary`). */
class Vocabulary {
  /** read: words that the encoder knows, where those are others. */
  constructor(words, read = null) {
    this.words = words;
    this.ids = new Map(words.map((word, id) => [word, id]));
    this.reads = read && new Map(read.map((word, id) => [word, id]));
  }

  /** Extended ids of rows of words, and the words that the vocabulary does not have, in the order of their ids. With a
   *  vocabulary of the encoder's own also the ids that it reads. */
  encode(rows) {
    const unknown = new Map(), size = this.words.length;
    const id = word => {
      const known = this.ids.get(word) ?? unknown.get(word);
      if (known !== undefined) return known;
      unknown.set(word, size + unknown.size);
      return size + unknown.size - 1;
    };
    const ids = { sentences: rows.map(words => words.map(id)), unknown: [...unknown.keys()] };
    return this.reads ? { ...ids, read: rows.map(words => words.map(word => this.reads.get(word) ?? UNK)) } : ids;
  }

  /** The extended id of a word, for a text of these unknown words: [UNK] where it is none of them. */
  idOf(word, unknown) {
    const place = unknown.indexOf(word);
    return this.ids.get(word) ?? (place < 0 ? UNK : this.words.length + place);
  }

  word(id, unknown) { return id < this.words.length ? this.words[id] : unknown[id - this.words.length]; }
}
