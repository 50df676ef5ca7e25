/** Generated mail for a machine that relays by smarthosts, from a seed. Each message has a number, by which it is recognized. */
import { Draws } from '../draws.ts'

export interface Recipient {
  readonly address: string
  /** Parameters of RCPT, with a leading blank; empty without any. */
  readonly parameters: string
}

export interface Input {
  readonly number: number
  /** Address of the client. */
  readonly from: string
  readonly sender: string
  /** Parameters of MAIL, with a leading blank; empty without any. */
  readonly parameters: string
  readonly recipients: readonly Recipient[]
  /** Lines that end with CRLF. */
  readonly content: string
}

const NAMES = ['ann', 'bob', 'eve.x', 'carl', 'zoe', 'ann+news', 'Bob', 'info']
const DOMAINS = ['a.test', 'b.test', 'c.test', 'sub.a.test', 'deep.c.test', 'x.b.test', 'far.test', 'direct.test']
const SENDER_DOMAINS = [...DOMAINS, 'news.test', 'bulk.test']
const LOCAL_NAMES = ['root', 'postmaster', 'ops', 'list', 'zoe']
const LOCAL_DOMAINS = ['origin.example', 'host.example', 'localhost']
const ACCESS_SENDERS = ['blocked@a.test', 'held@b.test', 'gone@b.test', 'other@b.test']
const ACCESS_RECIPIENTS = ['no@far.test', 'late@far.test', 'away@c.test']
const MAIL_PARAMETERS = ['', '', ' RET=HDRS ENVID=QQ+2B314', ' BODY=8BITMIME', ' RET=FULL']
const WISHES = ['', '', ' NOTIFY=NEVER', ' NOTIFY=FAILURE,DELAY', ' NOTIFY=SUCCESS', ' NOTIFY=FAILURE ORCPT=rfc822;orig+2Bx@o.test']
const SUBJECTS = ['hello', 'a report', 'Re: news', 'lottery', 'casino', 'wait a day', 'for the boss', 'a note', 'gr\u00fc\u00dfe', '']
const FIELDS = ['X-Mailer: Tool/1.2', 'X-Remove: this', 'X-Before: yes', 'X-Plain: text', 'Cc: ann@a.test,\r\n "Eve, X" <eve.x@b.test>']
const PEOPLE = ['', '', 'Ann Example', '"Example, Ann"', 'Ann (A) Example']
const BODIES = [
  'text\r\n',
  '.dot\r\n..two\r\n',
  `${'x'.repeat(900)}\r\n`,
  'gr\xfc\xdfe\r\n',
  '',
  'password: 1234\r\n',
  'line of text\r\n'.repeat(3),
]

export class Inputs {
  readonly #draws: Draws

  constructor(seed: number) {
    this.#draws = new Draws(seed, 'migration')
  }

  /** The message of a number. `extra` is a further recipient. */
  next(number: number, extra?: string): Input {
    const draws = this.#draws
    const addresses = new Map(draws.many(1, 4, () => this.#recipient()).map((address) => [address.toLowerCase(), address]))
    if (extra !== undefined) addresses.set(extra, extra)
    return {
      number,
      from: draws.next() < 0.03 ? '127.0.0.9' : '127.0.0.1',
      sender: this.#sender(),
      parameters: draws.of(MAIL_PARAMETERS),
      recipients: [...addresses.values()].map((address) => ({ address, parameters: draws.of(WISHES) })),
      content: this.#content(number),
    }
  }

  #content(number: number): string {
    const draws = this.#draws
    const fields = draws.shuffled([
      `From: ${this.#members(1)}`,
      `To: ${this.#members(4)}`,
      `Subject: ${draws.of(SUBJECTS)}`,
      ...draws.many(0, 3, () => draws.of(FIELDS)),
      ...(draws.next() < 0.2 ? [`Reply-To: ${this.#members(2)}`] : []),
      ...(draws.next() < 0.2 ? [] : ['Date: Fri, 20 Nov 2026 10:00:00 +0000', `Message-Id: <${number}@given.test>`]),
    ])
    return `${[`X-Number: ${number}`, ...fields].join('\r\n')}\r\n\r\n${draws.of(BODIES)}`
  }

  #sender(): string {
    const chance = this.#draws.next()
    if (chance < 0.05) return ''
    if (chance < 0.12) return this.#draws.of(ACCESS_SENDERS)
    return chance < 0.2 ? this.#local() : `${this.#draws.of(NAMES)}@${this.#draws.of(SENDER_DOMAINS)}`
  }

  #recipient(): string {
    const chance = this.#draws.next()
    if (chance < 0.08) return this.#draws.of(ACCESS_RECIPIENTS)
    return chance < 0.3 ? this.#local() : `${this.#draws.of(NAMES)}@${this.#draws.of(DOMAINS)}`
  }

  #local(): string {
    return `${this.#draws.of(LOCAL_NAMES)}@${this.#draws.of(LOCAL_DOMAINS)}`
  }

  #members(limit: number): string {
    return this.#draws.many(1, limit + 1, () => this.#member()).join(', ')
  }

  #member(): string {
    const [address, name] = [this.#headerAddress(), this.#draws.of(PEOPLE)]
    return name === '' ? address : `${name} <${address}>`
  }

  #headerAddress(): string {
    const chance = this.#draws.next()
    if (chance < 0.2) return this.#draws.of(LOCAL_NAMES)
    return chance < 0.3 ? this.#local() : `${this.#draws.of(NAMES)}@${this.#draws.of(SENDER_DOMAINS)}`
  }
}

/** A call of sendmail by a program. */
export interface Call {
  readonly number: number
  readonly args: readonly string[]
  readonly input: string
}

/** Mail of programs that call sendmail: cron, and PHP's mail(), with line ends of both kinds. */
export function callsOfPrograms(first: number): readonly Call[] {
  const numbers = Array.from({ length: 12 }, (_, n) => first + n)
  return numbers.map((number, n) => (n < 4 ? fromCron(number, n) : fromPhp(number, n)))
}

/** Mail as cron(8) of Debian pipes it to sendmail. */
const fromCron = (number: number, n: number): Call => ({
  number,
  args: ['-FCronDaemon', '-i', '-B8BITMIME', '-oem', n % 2 === 0 ? 'root' : 'ann@a.test'],
  input: [
    'From: root (Cron Daemon)',
    `To: ${n % 2 === 0 ? 'root' : 'ann@a.test'}`,
    `Subject: Cron <root@host> job ${number}`,
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=UTF-8',
    'Content-Transfer-Encoding: 8bit',
    'X-Cron-Env: <SHELL=/bin/sh>',
    'X-Cron-Env: <HOME=/root>',
    '',
    `output ${n} gr\xc3\xbc\xc3\x9fe`,
    '.',
    'after a dot',
    '',
  ].join('\n'),
})

const PHP_RECIPIENTS = ['ann@b.test', 'Root <root>, bob@b.test', '"Example, Ann" <ann@a.test>', 'zoe@localhost']

/** Mail of mail() in PHP: sendmail -t -i, with -f where the program gives a sender. */
function fromPhp(number: number, n: number): Call {
  const fields = [
    `To: ${PHP_RECIPIENTS[n % PHP_RECIPIENTS.length]}`,
    `Subject: order ${n}`,
    `X-Number: ${number}`,
    'X-PHP-Originating-Script: 33:shop.php',
    ...(n % 2 === 0 ? ['From: Shop <bob@a.test>'] : []),
    ...(n % 3 === 0 ? ['Cc: eve.x@b.test', 'Bcc: hidden@c.test'] : []),
  ]
  const end = n % 2 === 0 ? '\r\n' : '\n'
  const sender = n % 4 === 0 ? [] : n % 4 === 1 ? ['-f', 'bob@a.test'] : [`-fzoe@news.test`]
  return { number, args: ['-t', '-i', ...sender], input: `${fields.join(end)}${end}${end}Thank you.${end}` }
}
