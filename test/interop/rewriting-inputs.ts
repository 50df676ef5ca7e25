/** Generated mail for comparisons of address rewriting, from a seed. */
import { Draws } from './draws.ts'

export interface RewritingInput {
  readonly sender: string
  readonly recipients: readonly { readonly address: string; readonly parameters: string }[]
  readonly header: string
}

const LOCALS = [
  'ann',
  'bob',
  'Carl',
  'ann+news',
  'bob+a+b',
  'root',
  'postmaster',
  'eve.x',
  '"a b"',
  'list',
  'loop',
  'zoe',
  'Ann',
  'owner-list',
]
const DOMAINS = ['a.test', 'b.test', 'c.test', 'sub.a.test', 'deep.sub.a.test', 'x.b.test', 'origin.example', 'relay.example', 'localhost']
const NAMES = ['', '', 'Ann Example', '"Example, Ann"', 'A. B. Cee', '=?utf-8?q?=C3=84nn?=', '"q \\" q"', 'Ann (A) Example']
const SENDER_FIELDS = ['From', 'Sender', 'Reply-To', 'Errors-To', 'Return-Receipt-To', 'Disposition-Notification-To', 'Mail-Followup-To']
const RECIPIENT_FIELDS = ['To', 'Cc', 'Apparently-To', 'Resent-To', 'Resent-Cc', 'Resent-Reply-To', 'TO']
const NOTIFY = [
  '',
  '',
  '',
  ' NOTIFY=NEVER',
  ' NOTIFY=FAILURE,DELAY',
  ' ORCPT=rfc822;orig+2Bx@o.test',
  ' NOTIFY=FAILURE ORCPT=rfc822;z@o.test',
  ' NOTIFY=SUCCESS',
  ' NOTIFY=SUCCESS,DELAY',
]

export class InputGenerator {
  readonly #draws: Draws

  constructor(seed: number) {
    this.#draws = new Draws(seed, 'input')
  }

  /** A message. Its sender is in no loop of aliases, where Postfix loses notices and deferd sends them to the sender itself. */
  input(): RewritingInput {
    // deferd takes a repeated recipient once, Postfix once for each set of parameters.
    const addresses = new Map(this.#draws.many(1, 4, () => this.#address()).map((address) => [address.toLowerCase(), address]))
    const recipients = [...addresses.values()].map((address) => ({ address, parameters: this.#draws.of(NOTIFY) }))
    const fields = [
      this.#field(this.#draws.of(SENDER_FIELDS)),
      this.#field(this.#draws.of(RECIPIENT_FIELDS)),
      this.#field('From'),
      this.#field('To'),
    ]
    return {
      sender: this.#draws.next() < 0.1 ? '' : this.#address().replace('loop', 'sam'),
      recipients,
      header: this.#draws.shuffled(fields).join(''),
    }
  }

  #address(): string {
    return `${this.#draws.of(LOCALS)}@${this.#draws.of(DOMAINS)}`
  }

  #headerAddress(): string {
    const domain =
      this.#draws.next() < 0.15 ? '' : `@${this.#draws.next() < 0.1 ? this.#draws.of(DOMAINS).toUpperCase() : this.#draws.of(DOMAINS)}`
    return this.#draws.of(LOCALS) + domain
  }

  #field(name: string): string {
    return `${name}: ${this.#list()}\r\n`
  }

  #list(): string {
    const members = this.#draws.many(1, 5, () => this.#member())
    if (this.#draws.next() < 0.1) return `friends: ${members.join(', ')};`
    return members.join(this.#draws.of([', ', ',', ',\r\n ', ' ', '\t,  ']))
  }

  #member(): string {
    const [address, name] = [this.#headerAddress(), this.#draws.of(NAMES)]
    if (name !== '') return `${name} <${address}>`
    return this.#draws.of([
      address,
      address,
      `<${address}>`,
      `${address} (a comment)`,
      `(a comment) ${address}`,
      `< ${address} >`,
      `<@r.test:${address}>`,
    ])
  }
}
