/** Address rewriting: deferd and Postfix get the same generated mail with the same parameters, and send the same. */
import { describe, expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import type { ReceivedMail } from '../../src/testkit/remote/remote-events.ts'
import { reasonToSkip } from '../support/required.ts'
import { Client } from './dialogue.ts'
import { settled } from './observe.ts'
import { InputGenerator, type RewritingInput } from './rewriting-inputs.ts'
import { SITUATIONS, WITHOUT_NOTICES } from './rewriting-situations.ts'
import { startPair, type Pair, type System } from './systems.ts'

const WIDTH = 8
const BODY = `Date: Fri, 20 Nov 2026 10:00:00 +0000\r\nMessage-Id: <x@y.test>\r\n\r\nbody\r\n.\r\n`

const reason = reasonToSkip('interop', await postfixIsMissing())

/** Describes tests that send generated mail through both systems, one test for each of the situations. */
export function compareRewriting(names: readonly string[], inputs: number): void {
  describe.skipIf(reason !== null)(`rewriting by deferd and Postfix${reason === null ? '' : ` (not run: ${reason})`}`, () => {
    test.each(names)(
      `%s: ${inputs} messages are sent with equal envelopes and headers`,
      async (name) => {
        const settings = SITUATIONS[name]
        if (settings === undefined) throw new Error(`no situation is called ${name}`)
        const pair = await startPair({ settings, withLocalDelivery: 'alias_maps' in settings })
        try {
          await compare(pair, { name, inputs })
        } finally {
          await pair.stop()
        }
      },
      180_000,
    )
  })
}

interface Comparison {
  readonly name: string
  readonly inputs: number
}

async function compare(pair: Pair, { name, inputs }: Comparison): Promise<void> {
  const generator = new InputGenerator(Object.keys(SITUATIONS).indexOf(name) + 1)
  const mails = Array.from({ length: inputs }, (_, n) => [n, generator.input()] as const)
  const replies: string[][] = []
  const left = mails.values()
  await Promise.all(
    Array.from({ length: WIDTH }, async () => {
      for (const [n, input] of left) replies[n] = await Promise.all([submitted(pair.deferd, input, n), submitted(pair.postfix, input, n)])
    }),
  )
  await settled([pair.deferd, pair.postfix], 1000)
  const [ours, theirs] = [outcomes(pair.deferd, name), outcomes(pair.postfix, name)]
  const different = mails.flatMap(([n, input]) => {
    const [deferd, postfix] = [
      [replies[n]?.[0], ours.get(n)],
      [replies[n]?.[1], theirs.get(n)],
    ]
    return JSON.stringify(deferd) === JSON.stringify(postfix) ? [] : [{ input, deferd, postfix }]
  })
  expect(different.slice(0, 3)).toEqual([])
  expect(theirs.size).toBeGreaterThan(inputs / 2)
}

/** True for a message that is sent by sendmail. */
const isLocal = (n: number): boolean => n % 10 === 0

/** Sends a message. Returns the class of the reply to its content; empty for sendmail. */
const submitted = (system: System, input: RewritingInput, n: number): Promise<string> =>
  isLocal(n) ? submittedLocally(system, input, n) : submittedBySmtp(system, input, n)

async function submittedLocally(system: System, { sender, recipients, header }: RewritingInput, n: number): Promise<string> {
  const content = `Subject: message ${n}\r\n${header}${BODY.replace(/\.\r\n$/, '')}`.replaceAll('\r\n', '\n')
  await system.sendmail(['-i', '-f', sender, '--', ...recipients.map(({ address }) => address)], content)
  return ''
}

async function submittedBySmtp({ port }: System, { sender, recipients, header }: RewritingInput, n: number): Promise<string> {
  const client = await Client.open(port, '127.0.0.1')
  try {
    const lines = [
      'EHLO client.example',
      `MAIL FROM:<${sender}>`,
      ...recipients.map(({ address, parameters }) => `RCPT TO:<${address}>${parameters}`),
      'DATA',
      `Subject: message ${n}\r\n${header}${BODY.trimEnd()}`,
    ]
    let reply = await client.reply()
    for (const line of lines) {
      client.send(`${line}\r\n`)
      reply = await client.reply()
    }
    return reply.slice(0, 3)
  } finally {
    client.close()
  }
}

interface Outcome {
  readonly sender: string
  readonly recipients: readonly string[]
  readonly headers: readonly string[]
  /** Recipients of notices, each with the fields of the addresses that it reports. */
  readonly notices: readonly string[]
}

/** The outcomes by the number of the message. Recipients are sorted: Postfix sends them by domain, deferd as they came. */
function outcomes({ received }: System, name: string): ReadonlyMap<number, Outcome> {
  const byNumber = Map.groupBy(received, (mail) => Number(/^Subject: message (\d+)/m.exec(mail.content.toString('latin1'))?.[1] ?? -1))
  return new Map(
    [...byNumber].map(([n, mails]) => {
      const outcome = outcomeOf(WITHOUT_NOTICES.has(name) ? mails.filter((mail) => !isNotice(mail)) : mails)
      return [n, isLocal(n) ? ofSendmail(outcome) : outcome]
    }),
  )
}

/**
 * An outcome of sendmail in a common form. For a local user, Postfix sends the canonical address as ORCPT, and adds the full name to
 * Resent-From (docs/postfix-differences.md).
 */
const ofSendmail = ({ recipients, headers, ...outcome }: Outcome): Outcome => ({
  ...outcome,
  recipients: recipients.map((text) => text.replace(/ORCPT=\S*/, '').trim()).toSorted(),
  headers: headers.map((text) => text.replace(/^Resent-From: .*/m, 'Resent-From: ')),
})

function outcomeOf(received: readonly ReceivedMail[]): Outcome {
  const notices = received.filter(isNotice)
  const mails = received.filter((mail) => !isNotice(mail))
  return {
    sender: mails[0]?.sender ?? '',
    recipients: mails.flatMap(recipientsOf).toSorted(),
    headers: [...new Set(mails.map(headerOf))],
    notices: notices.flatMap(reportsOf).toSorted(),
  }
}

const recipientsOf = ({ recipients, rcptParameters }: ReceivedMail): readonly string[] =>
  recipients.map((address, i) => `${address} ${withoutCopies(address, rcptParameters[i] ?? '')}`)

const isNotice = ({ content }: ReceivedMail): boolean => content.includes('report-type=delivery-status')

const REPORT = /^Final-Recipient: (.*)\r\nOriginal-Recipient: (.*)\r\nAction: (.*)\r\nStatus: (.*)\r\n/gm

/**
 * The reports of a notice, for each of its recipients: Postfix sends it once for each transport. Of a loop, the systems name
 * different aliases.
 */
const reportsOf = ({ recipients, content }: ReceivedMail): readonly string[] =>
  [...content.toString('latin1').matchAll(REPORT)].flatMap(([, last = '', ...fields]) => {
    const named = fields.at(-1) === '5.4.6' ? '(an alias)' : last
    return recipients.map((address) => [address, named, ...fields].join(' ').replaceAll('; ', ';'))
  })

/** Parameters of RCPT, without an ORCPT that repeats the address: Postfix always sends one. */
export const withoutCopies = (address: string, text: string): string =>
  text
    .split(' ')
    .filter((one) => one.toLowerCase() !== `orcpt=rfc822;${address.replaceAll('+', '+2B').replaceAll(' ', '+20')}`.toLowerCase())
    .toSorted()
    .join(' ')

const headerOf = ({ content }: ReceivedMail): string =>
  content
    .toString('latin1')
    .split('\r\n\r\n', 1)[0]!
    .split(/\r\n(?![ \t])/)
    .filter((field) => !/^(?:Received|Delivered-To|Resent-Message-Id|Resent-Date):/i.test(field))
    .map((field) => field.trimEnd().replace(/^(Resent-From: MAILER-DAEMON)@.*/, '$1'))
    .join('\n')
