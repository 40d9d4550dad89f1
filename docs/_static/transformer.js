/* A Transformer that runs in the page: the forward pass of chapter 1.9, in JavaScript.

   Read it beside nbs/1_model/9_one_page.ipynb: the names are the same, and so is the order. Some things differ. There is no
   batch and no training: a text is one list of ids. A mask is a function, `may_attend(q, k)`. Every head's weights are
   kept, so that a page can draw them. And parts can be taken away.

     const model = await AnnotatedTransformer.load("cat");   // a folder of annotated_transformer/pretrained
     const src = model.source("I have seen the cat");        // ids with EOS; an Error names a word it doesn't know
     const encoded = model.encode(src);                      // { memory S D, mask, attention }
     const decoded = model.decode([model.bos_id], encoded);  // { hidden T D, logits T V, attention }
     const p = model.next_probabilities(decoded);            // V, of the next token; those of PAD and BOS are 0
     const { ids, text, steps } = model.greedy_decode(src);  // a step for each id: { best, probabilities, attention }
     model.writes(ids, src)                                  // whether greedy decoding writes these ids
     const { answers, steps } = model.beam_search(src, { beam_size: 4 });  // both may `begin` with given ids
     model.tokenizer.encode(text), .decode(ids), .words(ids) // `words` are labels, one for each id

   `attention` is { "encoder self": [layer][head], "decoder self": ..., "decoder cross": ... }, each a Matrix Q K;
   `encode` returns the first, `decode` the other two. A Matrix has { rows, cols, data, row(i) }, its data in a
   Float32Array.

   Each of these methods takes `without` as its last argument, as in model.greedy_decode(src, {}, { positions: true }).
   It says what to take away, all of it optional:
     { causal_mask, padding_mask, positions, cross_attention, residuals, scale, layer_norm: true,
       head: { part: "decoder cross", layer: 0, head: 2 } }

   Nothing is asked of another host. `load` adds a script of the folder models/ beside this file, which
   docs/export_models.py writes when the site is built. It works from file:// too. */

const AnnotatedTransformer = (() => {
  "use strict";

  // ---- Matrices ----

  class Matrix {
    constructor(rows, cols, data = new Float32Array(rows * cols)) {
      this.rows = rows;
      this.cols = cols;
      this.data = data;
    }

    // a view, not a copy
    row(i) {
      return this.data.subarray(i * this.cols, (i + 1) * this.cols);
    }
  }

  // row i of x times row j of y; the sum is kept in double precision
  function dot(x, i, y, j) {
    const width = x.cols;
    const a = x.data;
    const b = y.data;

    let sum = 0;
    for (let d = 0; d < width; d++) sum += a[i * width + d] * b[j * width + d];
    return sum;
  }

  // x W^T + b, as in nn.Linear: L In, Out In, Out -> L Out
  function linear(x, weight, bias = null) {
    const out = new Matrix(x.rows, weight.rows);
    for (let i = 0; i < x.rows; i++) {
      for (let j = 0; j < weight.rows; j++) {
        out.data[i * out.cols + j] = dot(x, i, weight, j) + (bias ? bias.data[j] : 0);
      }
    }
    return out;
  }

  function add(x, y) {
    return new Matrix(x.rows, x.cols, x.data.map((value, i) => value + y.data[i]));
  }

  // some columns of a matrix: the part of one head
  function columns(x, from, to) {
    const out = new Matrix(x.rows, to - from);
    for (let i = 0; i < x.rows; i++) out.row(i).set(x.row(i).subarray(from, to));
    return out;
  }

  // scores that are -Infinity get the weight 0; a row of nothing else gets zeros
  function softmax(scores) {
    const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    if (largest === -Infinity) return scores.map(() => 0);
    const weights = scores.map(score => Math.exp(score - largest));
    const sum = weights.reduce((a, b) => a + b, 0);
    return weights.map(weight => weight / sum);
  }

  // in double precision: what is too improbable for a float32 keeps its logarithm
  function log_softmax(scores) {
    const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    const sum = scores.reduce((sum, score) => sum + Math.exp(score - largest), 0);
    return scores.map(score => score - largest - Math.log(sum));
  }

  // ---- The parts of a layer ----

  // equation 1 for one head: Q Dk, K Dk, K Dv -> Q Dv; `may_attend(q, k)` is the mask
  function attention(query, key, value, may_attend, without) {
    const scale = without.scale ? 1 : 1 / Math.sqrt(key.cols);
    const weights = new Matrix(query.rows, key.rows);
    const out = new Matrix(query.rows, value.cols);

    for (let q = 0; q < query.rows; q++) {
      const scores = weights.row(q);
      for (let k = 0; k < key.rows; k++) {
        scores[k] = may_attend(q, k) ? dot(query, q, key, k) * scale : -Infinity;
      }
      scores.set(softmax(scores));

      // a mixture of the values
      const mixed = out.row(q);
      for (let k = 0; k < key.rows; k++) {
        const value_of_k = value.row(k);
        for (let d = 0; d < value.cols; d++) mixed[d] += scores[k] * value_of_k[d];
      }
    }
    return { out, weights };
  }

  function layer_norm(x, weight, bias, eps) {
    const out = new Matrix(x.rows, x.cols);
    for (let i = 0; i < x.rows; i++) {
      const row = x.row(i);
      const mean = row.reduce((a, b) => a + b, 0) / x.cols;
      const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.cols;
      const root = Math.sqrt(variance + eps);
      for (let d = 0; d < x.cols; d++) {
        out.data[i * x.cols + d] = weight.data[d] * (row[d] - mean) / root + bias.data[d];
      }
    }
    return out;
  }

  // whether a head is taken away, alone or with all of cross-attention
  function is_gone({ part, layer, head }, without) {
    if (without.cross_attention && part === "decoder cross") return true;
    const gone = without.head;
    return Boolean(gone) && gone.part === part && gone.layer === layer && gone.head === head;
  }

  // sin, cos, sin, cos ... of a position, section 3.5
  function sinusoids(length, d_model) {
    const table = new Matrix(length, d_model);
    for (let position = 0; position < length; position++) {
      for (let d = 0; d < d_model; d += 2) {
        const angle = position * 10000 ** (-d / d_model);
        table.data[position * d_model + d] = Math.sin(angle);
        table.data[position * d_model + d + 1] = Math.cos(angle);
      }
    }
    return table;
  }

  // ---- The model ----

  class Transformer {
    constructor({ name, config, tensors, weights, tokenizer }) {
      this.name = name;
      this.config = config;
      this.pad_id = config.pad_id;
      this.bos_id = config.bos_id;
      this.eos_id = config.eos_id;

      this.tokenizer = tokenizer.merges ? new BPETokenizer(tokenizer) : new WordTokenizer(tokenizer);
      this.tensors = read_tensors(tensors, weights);
      this.embedding = this.tensors["output.weight"];  // source, target and output
    }

    // the ids of a text, with EOS: what the encoder reads
    source(text) {
      return [...this.tokenizer.encode(clean_text(text)), this.eos_id];
    }

    embed(ids, without) {  // L -> L D; sections 3.4 and 3.5
      const { d_model } = this.config;
      const x = new Matrix(ids.length, d_model);
      ids.forEach((id, i) => {
        const scaled = this.embedding.row(id).map(value => value * Math.sqrt(d_model));
        x.row(i).set(scaled);
      });
      return without.positions ? x : add(x, sinusoids(ids.length, d_model));
    }

    // section 3.2.2: Q D, K D -> Q D. `place` is where it is, such as { part: "decoder self", layer: 0 }, and `record`
    // gets the weights of its heads
    multi_head_attention(x, memory, may_attend, place, record, without) {
      const { d_model, n_heads } = this.config;
      const d_k = d_model / n_heads;
      const [stack, kind] = place.part.split(" ");
      const prefix = `${stack}.layers.${place.layer}.${kind}_attention`;

      const query = linear(x, this.tensors[`${prefix}.q_proj.weight`]);
      const key = linear(memory, this.tensors[`${prefix}.k_proj.weight`]);
      const value = linear(memory, this.tensors[`${prefix}.v_proj.weight`]);

      // attention in each head, then the heads side by side; where one is taken away, zeros stay
      const heads = new Matrix(x.rows, d_model);
      const weights = [];
      for (let h = 0; h < n_heads; h++) {
        const [q, k, v] = [query, key, value].map(all => columns(all, h * d_k, (h + 1) * d_k));
        const head = attention(q, k, v, may_attend, without);
        weights.push(head.weights);
        if (is_gone({ ...place, head: h }, without)) continue;
        for (let i = 0; i < x.rows; i++) heads.row(i).set(head.out.row(i), h * d_k);
      }
      record[place.part].push(weights);
      return linear(heads, this.tensors[`${prefix}.out_proj.weight`]);
    }

    // two linear layers with a ReLU in between, section 3.3
    feed_forward(x, layer) {
      const part = name => this.tensors[`${layer}.feed_forward.${name}`];
      const hidden = linear(x, part("linear1.weight"), part("linear1.bias"));
      for (let i = 0; i < hidden.data.length; i++) hidden.data[i] = Math.max(hidden.data[i], 0);
      return linear(hidden, part("linear2.weight"), part("linear2.bias"));
    }

    // a sub-layer with its residual connection and its norm: norm(x + f(x))
    sublayer(x, f, norm_name, without) {
      const y = f(x);
      return this.norm(without.residuals ? y : add(x, y), norm_name, without);
    }

    norm(x, name, without) {
      if (without.layer_norm) return x;
      return layer_norm(x, this.tensors[`${name}.weight`], this.tensors[`${name}.bias`], this.config.norm_eps);
    }

    encoder_layer(x, may_attend, i, record, without) {  // S D -> S D
      const layer = `encoder.layers.${i}`;
      const self_attention = y =>
        this.multi_head_attention(y, y, may_attend, { part: "encoder self", layer: i }, record, without);

      x = this.sublayer(x, self_attention, `${layer}.norm1`, without);
      return this.sublayer(x, y => this.feed_forward(y, layer), `${layer}.norm2`, without);
    }

    decoder_layer(x, memory, may_attend, may_attend_memory, i, record, without) {  // T D, S D -> T D
      const layer = `decoder.layers.${i}`;
      const self_attention = y =>
        this.multi_head_attention(y, y, may_attend, { part: "decoder self", layer: i }, record, without);
      const cross_attention = y =>
        this.multi_head_attention(y, memory, may_attend_memory, { part: "decoder cross", layer: i }, record, without);

      x = this.sublayer(x, self_attention, `${layer}.norm1`, without);
      x = this.sublayer(x, cross_attention, `${layer}.norm2`, without);
      return this.sublayer(x, y => this.feed_forward(y, layer), `${layer}.norm3`, without);
    }

    encode(src, without = {}) {  // S -> memory S D
      const mask = src.map(id => id !== this.pad_id || Boolean(without.padding_mask));
      const record = { "encoder self": [] };

      let x = this.embed(src, without);
      for (let i = 0; i < this.config.n_layers; i++) {
        x = this.encoder_layer(x, (q, k) => mask[k], i, record, without);
      }
      return { memory: x, mask, attention: record };
    }

    decode(tgt, { memory, mask }, without = {}) {  // T, S D -> T D and logits T V
      const causal = (q, k) => k <= q || Boolean(without.causal_mask);
      const record = { "decoder self": [], "decoder cross": [] };

      let x = this.embed(tgt, without);
      for (let i = 0; i < this.config.n_layers; i++) {
        x = this.decoder_layer(x, memory, causal, (q, k) => mask[k], i, record, without);
      }
      return { hidden: x, logits: linear(x, this.embedding), attention: record };
    }

    // ---- Writing an answer ----

    // of the token that follows the last one, or the one at place t; PAD and BOS are never written
    next_probabilities({ logits }, t = logits.rows - 1) {
      const probabilities = softmax(logits.row(t));
      probabilities[this.pad_id] = probabilities[this.bos_id] = 0;
      return probabilities;
    }

    next_log_probs({ logits }) {
      const log_probs = log_softmax(logits.row(logits.rows - 1));
      log_probs[this.pad_id] = log_probs[this.bos_id] = -Infinity;
      return log_probs;
    }

    // whether greedy decoding writes these ids, from the place `start` on. One pass over all of them is enough: each
    // place sees only what is before it, so this is not for a model without the causal mask
    writes(ids, src, without = {}, start = 0) {
      const decoded = this.decode([this.bos_id, ...ids.slice(0, -1)], this.encode(src, without), without);
      return ids.every((id, t) => t < start || id === place_of_largest(this.next_probabilities(decoded, t)));
    }

    // tokens with EOS, section 6.1
    max_length(src) {
      return src.filter(id => id !== this.pad_id).length + 50;
    }

    // always the most probable next token, until EOS; the answer may be made to begin with some ids
    greedy_decode(src, { begin = [], max_length = this.max_length(src) } = {}, without = {}) {
      const encoded = this.encode(src, without);
      const ids = [];
      const steps = [];

      while (ids.length < max_length && ids[ids.length - 1] !== this.eos_id) {
        const decoded = this.decode([this.bos_id, ...ids], encoded, without);
        const probabilities = this.next_probabilities(decoded);
        const best = place_of_largest(probabilities);
        ids.push(begin[ids.length] ?? best);
        steps.push({ best, probabilities, attention: { ...encoded.attention, ...decoded.attention } });
      }
      return { ids, text: this.tokenizer.decode(ids), steps };
    }

    // chapter 3.4: keep the best hypotheses alive, and choose at the end. A step lists the candidates, the best first:
    // { ids, log_prob, score, parent, state }; `parent` is the hypothesis of the step before (its index in
    // `steps[t - 1]`), and `state` says what became of it: "alive", "finished" or "dropped".
    //
    // The answers may be made to begin with some ids. These count as certain, for there is nothing to choose: what is
    // compared is how probable the rest is, given this beginning
    beam_search(src, options = {}, without = {}) {
      const { begin = [], beam_size = 4, length_penalty = 0.6, max_length = this.max_length(src) } = options;
      const encoded = this.encode(src, without);
      // repeats length_penalty of annotated_transformer/decoding/search.py; touch/beam.js puts it into words
      const penalty = length => ((5 + length) / 6) ** length_penalty;
      let alive = [{ ids: [], log_prob: 0, index: null }];
      let finished = [];
      const steps = [];

      for (let length = 1; length <= max_length && alive.length; length++) {
        // twice as many candidates as beams: some of them may end here
        const candidates = [];
        for (const { ids, log_prob, index } of alive) {
          const is_given = length <= begin.length;
          const nexts = is_given ? [{ id: begin[length - 1], log_prob: 0 }]
            : this.best_next(ids, 2 * beam_size, encoded, without);
          for (const next of nexts) {
            const total = log_prob + next.log_prob;
            const score = total / penalty(length);
            candidates.push({ ids: [...ids, next.id], log_prob: total, score, parent: index, state: "dropped" });
          }
        }
        candidates.sort((a, b) => b.log_prob - a.log_prob);
        candidates.splice(2 * beam_size);
        steps.push(candidates);

        // those that end among the best are answers
        const ends = ({ ids }) => ids.at(-1) === this.eos_id || length === max_length;
        const ended = candidates.slice(0, beam_size).filter(ends);
        for (const candidate of ended) candidate.state = "finished";
        finished = [...finished, ...ended].sort((a, b) => b.score - a.score).slice(0, beam_size);

        // the others live on
        const living = candidates.filter(candidate => !ends(candidate)).slice(0, beam_size);
        for (const candidate of living) candidate.state = "alive";
        alive = living.map(candidate => ({ ...candidate, index: candidates.indexOf(candidate) }));

        // over when no living hypothesis can still become better than the best answer: its log-probability only falls,
        // and the longest answer has the largest penalty to divide by. A beam of one ends as greedy decoding does
        if (!finished.length || !alive.length) continue;
        const best_possible = alive[0].log_prob / penalty(max_length);
        if (best_possible <= finished[0].score || beam_size === 1) break;
      }

      const answers = finished.map(answer => ({ ...answer, text: this.tokenizer.decode(answer.ids) }));
      return { answers, steps };
    }

    // the most probable tokens that may follow, the best first: { id, log_prob }
    best_next(ids, count, encoded, without) {
      const decoded = this.decode([this.bos_id, ...ids], encoded, without);
      const log_probs = this.next_log_probs(decoded);
      return top(log_probs, count).map(id => ({ id, log_prob: log_probs[id] }));
    }
  }

  const place_of_largest = numbers => numbers.indexOf(numbers.reduce((a, b) => Math.max(a, b)));

  // the places of the largest finite numbers, the largest first
  function top(numbers, count) {
    const finite = [...numbers.keys()].filter(i => numbers[i] > -Infinity);
    return finite.sort((a, b) => numbers[b] - numbers[a]).slice(0, count);
  }

  // ---- Tokenizers ----

  // one form for what looks the same, and single spaces between words
  function clean_text(text) {
    return text.normalize("NFC").split(/[\s\x1c-\x1f\x85]+/u).filter(word => word).join(" ");
  }

  const LABELS = ["PAD", "BOS", "EOS"];  // ids 0, 1, 2
  const BPE_LABELS = [...LABELS, "UNK"];

  class WordTokenizer {  // “Word tokenizers”
    constructor({ tokens }) {
      this.labels = [...LABELS, ...tokens];
      this.ids = new Map(tokens.map((token, i) => [token, i + LABELS.length]));
    }

    encode(text) {
      return text.split(" ").filter(word => word).map(word => {
        if (!this.ids.has(word)) throw new Error(`“${word}” is not in the vocabulary`);
        return this.ids.get(word);
      });
    }

    decode(ids) {
      return this.words(ids.filter(id => id >= LABELS.length)).join(" ");
    }

    words(ids) {
      return ids.map(id => this.labels[id]);
    }
  }

  // scripts without spaces between words: each character is a piece of its own
  const UNSPACED = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}"
    + "\\p{Script=Khmer}\\p{Script=Myanmar}\\u30fc\\uff70\\u3099\\u309a\\uff9e\\uff9f";
  const CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d";

  // where merges may not join: as GPT-2 cuts, perhaps with the scripts above cut into characters
  function pieces_of_text(split_unspaced) {
    const not = split_unspaced ? `(?![${UNSPACED}])` : "";
    const first = split_unspaced ? `[${UNSPACED}]\\p{M}*|` : "";
    const letters = ` ?(?:${not}\\p{L})+`;
    const digits = ` ?(?:${not}\\p{N})+`;
    const others = ` ?(?:${not}[^\\s\\p{L}\\p{N}])+`;
    const spaces = "\\s+(?!\\S)|\\s+";
    return new RegExp(`${first}${CONTRACTIONS}|${letters}|${digits}|${others}|${spaces}`, "gu");
  }

  // visible characters that stand for bytes in tokens, as in chapter 5.1
  function byte_letters() {
    const letters = [];
    let others = 0;
    for (let byte = 0; byte < 256; byte++) {
      const visible = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      letters.push(String.fromCharCode(visible ? byte : 256 + others++));
    }
    return letters;
  }
  const BYTE_LETTERS = byte_letters();
  const BYTES = new Map(BYTE_LETTERS.map((letter, byte) => [letter, byte]));

  class BPETokenizer {  // chapter 5.1
    constructor({ tokens, merges, split_unspaced, lowercase }) {
      this.tokens = tokens;
      this.ids = new Map(tokens.map((token, id) => [token, id]));
      this.ranks = new Map(merges.map((pair, rank) => [pair, rank]));  // "t h" -> its place among the merges
      this.pieces = pieces_of_text(split_unspaced);
      this.lowercase = lowercase;
    }

    encode(text) {
      const pieces = (this.lowercase ? text.toLowerCase() : text).match(this.pieces) || [];
      return pieces.flatMap(piece => this.merge(piece).map(token => this.ids.get(token)));
    }

    // start from bytes, and join the neighbours that were learned first until nothing can be joined
    merge(piece) {
      const tokens = [...new TextEncoder().encode(piece)].map(byte => BYTE_LETTERS[byte]);
      while (true) {
        let best = null;
        let lowest = Infinity;
        for (let i = 0; i + 1 < tokens.length; i++) {
          const rank = this.ranks.get(`${tokens[i]} ${tokens[i + 1]}`) ?? Infinity;
          if (rank < lowest) {
            best = i;
            lowest = rank;
          }
        }
        if (best === null) return tokens;
        tokens.splice(best, 2, tokens[best] + tokens[best + 1]);
      }
    }

    bytes(ids) {
      const letters = ids.flatMap(id => [...this.tokens[id]]);
      return Uint8Array.from(letters.map(letter => BYTES.get(letter)));
    }

    decode(ids) {
      return new TextDecoder().decode(this.bytes(ids.filter(id => id >= BPE_LABELS.length)));
    }

    words(ids) {
      return ids.map(id => BPE_LABELS[id] ?? this.word(id));
    }

    // a space is shown as ▁; bytes that are no whole character as \xc3
    word(id) {
      const bytes = this.bytes([id]);
      try {
        return new TextDecoder("utf-8", { fatal: true }).decode(bytes).replaceAll(" ", "▁");
      } catch {
        return [...bytes].map(byte => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
      }
    }
  }

  // ---- Weights ----

  // a float16: 1 bit for the sign, 5 for the exponent, 10 for the fraction; the exponent 0 has no leading 1
  function from_half(bits) {
    const sign = bits >> 15 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = (bits & 1023) / 1024;
    return exponent ? sign * (1 + fraction) * 2 ** (exponent - 15) : sign * fraction * 2 ** -14;
  }

  // name -> Matrix; a vector is a matrix of one row. `weights` is base64 of float16, and `tensors` has
  // name -> [shape, place of the first number]
  function read_tensors(tensors, weights) {
    const letters = atob(weights);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
    const numbers = new Uint16Array(bytes.buffer);

    const found = {};
    for (const [name, [shape, start]] of Object.entries(tensors)) {
      const [rows, cols] = shape.length === 2 ? shape : [1, shape[0]];
      const matrix = new Matrix(rows, cols);
      for (let i = 0; i < rows * cols; i++) matrix.data[i] = from_half(numbers[start + i]);
      found[name] = matrix;
    }
    return found;
  }

  // ---- Loading ----

  const here = typeof document === "undefined" ? null : document.currentScript?.src;
  const models = {};
  const loading = {};  // name -> promise, so that a model is asked for once

  // scripts in models/ call this
  function add_model(stored) {
    models[stored.name] = new Transformer(stored);
  }

  async function load(name) {
    if (!models[name]) {
      const url = new URL(`models/${name}.js`, here || document.baseURI);
      loading[name] ??= load_script(url).finally(() => delete loading[name]); // one that failed may be tried again
      await loading[name];
    }
    if (!models[name]) throw new Error(`models/${name}.js has no model ${name}`);
    return models[name];
  }

  function load_script(url) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = url;
      script.onload = resolve;
      script.onerror = () => {
        script.remove();
        reject(new Error(`${url} can't be read`));
      };
      document.head.append(script);
    });
  }

  return { load, add_model, Transformer, WordTokenizer, BPETokenizer };
})();
