/** Parameters of next hops that change how deferd and Postfix find and greet them. */
import { expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import { reasonToSkip } from '../support/required.ts'
import { levelled } from './known-differences.ts'
import { deliveries, facts, settled, submit } from './observe.ts'
import type { MailSituation } from './situations.ts'
import { startPair, type PairOptions, type System } from './systems.ts'

const WRAPPER = { smtp_tls_wrappermode: 'yes', smtp_tls_security_level: 'encrypt' }
const MAILS: readonly MailSituation[] = [
  { id: 'one recipient', content: 'Subject: one\r\n\r\nHello.\r\n' },
  { id: 'two recipients', rcpt: ['r@', 's@'], content: 'Subject: two\r\n\r\n..dot\r\n' },
  { id: 'a refused recipient', rcpt: ['r@', '550@'], content: 'Subject: three\r\n\r\nHello.\r\n' },
]

const reason = reasonToSkip('interop', await postfixIsMissing())

async function observed<T>(options: PairOptions, observe: (system: System) => T): Promise<readonly [deferd: T, postfix: T]> {
  const pair = await startPair(options)
  try {
    const both = [pair.deferd, pair.postfix] as const
    for (const [n, mail] of MAILS.entries()) await Promise.all(both.map((system) => submit(system, mail, n)))
    await settled(both, 1500)
    return [observe(pair.deferd), observe(pair.postfix)]
  } finally {
    await pair.stop()
  }
}

test.skipIf(reason !== null)(
  'both deliver alike to a server with TLS from the start',
  async () => {
    const [deferd, postfix] = await observed({ settings: WRAPPER, secureSinks: true }, (system) =>
      MAILS.map(({ content }, n) => ({ log: facts(system, n), deliveries: deliveries(system, n, content) })),
    )
    for (const [n, { id }] of MAILS.entries()) {
      expect(deferd[n]?.log).toEqual(postfix[n]?.log)
      const [ours, theirs] = levelled(id, 'deliveries', [deferd[n]?.deliveries ?? [], postfix[n]?.deliveries ?? []], new Set())
      expect(ours).toEqual(theirs)
    }
    expect(deferd.map((mail) => mail.deliveries.length)).toEqual([1, 1, 1])
  },
  60_000,
)

test.skipIf(reason !== null)(
  'both defer with 4.7.5 at a server without TLS, and send nothing',
  async () => {
    const codes = (system: System) => MAILS.map((_, n) => facts(system, n).flatMap((line) => /dsn=\S+ status=\w+/.exec(line)?.[0] ?? []))
    const [deferd, postfix] = await observed({ settings: WRAPPER }, (system) => ({
      codes: codes(system),
      received: system.received.length,
    }))
    expect(deferd).toEqual(postfix)
    expect(deferd).toMatchObject({ codes: [['dsn=4.7.5, status=deferred'], expect.anything(), expect.anything()], received: 0 })
  },
  60_000,
)

test.skipIf(reason !== null)(
  'both ask the machine for the address of a relayhost, and defer alike when it does not exist',
  async () => {
    // Without DNS the private Postfix always asks the machine.
    const settings = { smtp_host_lookup: 'native', relayhost: '[does-not-exist.invalid]:25' }
    const [deferd, postfix] = await observed({ settings }, (system) => MAILS.map((_, n) => facts(system, n)))
    expect(deferd).toEqual(postfix)
    expect(deferd[0]?.join('\n')).toContain('unable to look up host does-not-exist.invalid: ')
  },
  60_000,
)
