/** Generated mail for comparisons of header_checks and body_checks, from a seed. */
import { Draws } from './draws.ts'

export interface CheckedInput {
  readonly sender: string
  readonly recipients: readonly string[]
  readonly content: string
}

const SUBJECTS = [
  'a lottery',
  'viagra',
  'ask later',
  'casino of chance',
  'a discreet offer',
  'pending',
  'for the boss',
  'a report',
  'the MINUTES',
  'hello',
  'Re: hello',
  'fwd:  x y',
  'nothing',
  'news',
]
const FIELDS = [
  'X-Mailer: Tool/1.2.3',
  'X-Mailer: plain',
  'X-Remove: this',
  'x-remove : that',
  'X-Strip: it',
  'X-Before: yes',
  'X-Before: Yes',
  'X-Keep: kept',
  'X-Fold: one\r\n two',
  'X-Fold: one\r\n\ttwo\r\n  three',
  'X-Fold: one\r\n x\r\ntwo-fields: no',
  'X-Fold: o\r\n ~',
  `X-Long: ${'long '.repeat(30)}x`,
  `X-Long: ${'abcdefgh '.repeat(60)}x\r\n ${'z'.repeat(900)}`,
  'X-Empty:',

  'X-Blank: text  ',
  'Subject: blanks   ',
  'X-Empty: \r\n ',
  'X-Fold: one \r\n two \t',
  'X-Eight: \u00e9\u00df',
  'Cc: ann@a.test, abcd@b.test',
  'Odd: field',
]
const LINES = [
  'some text',
  'buy now',
  'forget this',
  'password: 1234',
  'Password: abc',
  '-- ',
  'drop this line',
  'hold this',
  'forward this',
  'remark one',
  'remark',
  '',
  '',
  'text with \u00e9',
  `${'x'.repeat(900)}y`,
  `${'a b '.repeat(700)}xxxxxy`,
  'Content-Id: <in a body>',
  '.a dot',
]
const PART_FIELDS = [
  'Content-Type: text/plain',
  'Content-Type: text/html; charset=us-ascii',
  'Content-Type: application/octet-stream; name="tool.exe"',
  'Content-Type: application/octet-stream;\r\n name=run.BAT',
  'Content-Disposition: attachment; filename="notes.txt"',
  'Content-Description: a part',
  'Content-Id: <1@x>',
  'X-Inner: part',
]

export class CheckedInputs {
  readonly #draws: Draws

  constructor(seed: number) {
    this.#draws = new Draws(seed, 'checked')
  }

  /** A message. Its sender names its number, so that log lines can be assigned. */
  input(n: number): CheckedInput {
    const recipients = this.#draws.many(1, 3, () => this.#draws.of(['ann@a.test', 'bob@b.test', 'cy@c.test']))
    const { type, body } = this.#body(0)
    const fields = this.#draws.shuffled([
      'From: ann@a.test',
      `To: ${this.#draws.of(['bob@b.test', 'abcd@b.test', 'Bob <bob@b.test>'])}`,
      `Subject: ${this.#draws.of(SUBJECTS)}`,
      ...this.#draws.many(0, 4, () => this.#draws.of(FIELDS)),
    ])
    const always = ['Date: Fri, 20 Nov 2026 10:00:00 +0000', `Message-Id: <${n}@x.test>`, `X-Number: ${n}`, ...type]
    const separator = this.#draws.next() < 0.05 ? '' : '\r\n'
    return {
      sender: `s${n}@s.test`,
      recipients: [...new Set(recipients)],
      content: `${[...fields, ...always].join('\r\n')}\r\n${separator}${body}`,
    }
  }

  /** A body with the fields that describe it. */
  #body(depth: number): { readonly type: readonly string[]; readonly body: string } {
    const kind = depth > 2 ? 1 : this.#draws.next()
    if (kind < 0.3) return this.#multipart(depth)
    if (kind < 0.4) {
      const inner = this.#body(depth + 1)
      const header = [...this.#draws.many(1, 3, () => this.#draws.of(PART_FIELDS.slice(4))), 'Subject: inner', ...inner.type].join('\r\n')
      return { type: ['Content-Type: message/rfc822'], body: `${header}\r\n\r\n${inner.body}` }
    }
    return { type: this.#draws.next() < 0.3 ? ['Content-Type: text/plain'] : [], body: this.#lines() }
  }

  #multipart(depth: number): { readonly type: readonly string[]; readonly body: string } {
    const boundary = `b${depth}.${Math.floor(this.#draws.next() * 1000)}`
    const parts = this.#draws.many(1, 4, () => {
      const inner = this.#body(depth + 1)
      const fields = [...this.#draws.many(0, 3, () => this.#draws.of(PART_FIELDS)), ...inner.type]
      return `--${boundary}\r\n${fields.map((field) => `${field}\r\n`).join('')}\r\n${inner.body}`
    })
    const end = this.#draws.next() < 0.9 ? `--${boundary}--\r\n${this.#lines()}` : ''
    const text = this.#draws.of([`"${boundary}"`, boundary])
    return {
      type: ['Mime-Version: 1.0', `Content-Type: multipart/mixed;\r\n boundary=${text}`],
      body: `${this.#lines()}${parts.join('')}${end}`,
    }
  }

  /** Lines of a body. Most are ordinary, so that most messages are delivered. */
  #lines(): string {
    return this.#draws
      .many(0, 5, () => (this.#draws.next() < 0.6 ? this.#draws.of(['plain', 'words', '']) : this.#draws.of(LINES)))
      .map((line) => `${line}\r\n`)
      .join('')
  }
}
