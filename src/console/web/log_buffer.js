// The lines of a log that the page holds, the newest so many, and those of them that match a filter. Lines have
// numbers that never change; old ones are dropped, so that a page that is open for a week needs no more memory than a
// new one.

const LINE_MAX = 8000;  // characters of a line that are kept: nobody reads on, and a tab must not die of a hostile one

export class LogBuffer {
  #lines = [];
  #head = 0;   // of #lines; before it are dropped ones, cut off in bulk
  #first = 0;  // the number of the oldest line that is there
  #characters = 0;
  #needle = '';
  #shown = null;  // numbers of lines that match, null: all
  #shownHead = 0;
  #dropped = 0;

  constructor(linesMax = 50000, charactersMax = 16e6) {
    this.linesMax = linesMax;
    this.charactersMax = charactersMax;
  }

  get needle() {
    return this.#needle;
  }
  // Of all lines there are.
  get total() {
    return this.#lines.length - this.#head;
  }
  // Of those that match: at(0) ... at(length - 1).
  get length() {
    return this.#shown ? this.#shown.length - this.#shownHead : this.total;
  }

  at(i) {
    const number = this.#shown ? this.#shown[this.#shownHead + i] : this.#first + i;
    return this.#line(number);
  }

  #line(number) {
    return this.#lines[this.#head + number - this.#first];
  }

  add(task, texts) {
    for (const told of texts) {
      const whole = told.endsWith('\r') ? told.slice(0, -1) : told;
      const text = whole.length <= LINE_MAX ? whole :
          `${whole.slice(0, LINE_MAX)} … (${whole.length - LINE_MAX} more characters)`;
      const line = {number: this.#first + this.total, task, text};
      this.#lines.push(line);
      this.#characters += text.length;
      if (this.#shown && this.#matches(line)) this.#shown.push(line.number);
    }
    while (this.total > this.linesMax || (this.#characters > this.charactersMax && this.total > 1)) this.#drop();
    if (this.#head > this.linesMax) {
      this.#lines.splice(0, this.#head);
      this.#head = 0;
    }
    if (this.#shownHead > this.linesMax) {
      this.#shown.splice(0, this.#shownHead);
      this.#shownHead = 0;
    }
  }

  #drop() {
    const line = this.#lines[this.#head];
    this.#lines[this.#head++] = undefined;
    this.#first++;
    this.#characters -= line.text.length;
    if (!this.#shown) this.#dropped++;
    else if (this.#shown[this.#shownHead] === line.number) this.#shownHead++, this.#dropped++;
  }

  // How many of those that match went away at the front since the last call: a view that stands still moves by them.
  takeDropped() {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  // Only lines that have this text, or whose task has; small and capital letters are one.
  filter(text) {
    this.#needle = text.toLowerCase();
    this.#shownHead = this.#dropped = 0;
    this.#shown = null;
    if (!this.#needle) return;
    this.#shown = this.#lines.slice(this.#head).filter((line) => this.#matches(line)).map((line) => line.number);
  }

  #matches({task, text}) {
    return text.toLowerCase().includes(this.#needle) || task.toLowerCase().includes(this.#needle);
  }

  clear() {
    this.#first += this.total;
    this.#lines = [];
    this.#head = this.#characters = 0;
    this.filter(this.#needle);
  }
}
