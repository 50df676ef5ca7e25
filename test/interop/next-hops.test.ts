/** Parameters of next hops that change how deferd and Postfix find and greet them. */
import { expect, test } from 'vitest'
import { postfixIsMissing } from '../../scripts/bench/postfix.ts'
import { reasonToSkip } from '../support/required.ts'
import { levelled } from './known-differences.ts'
import { deliveries, facts, isTried, settled, submit } from './observe.ts'
import type { MailSituation } from './situations.ts'
import { SinkPort, startPair, type PairOptions, type System } from './systems.ts'

const WRAPPER = { smtp_tls_wrappermode: 'yes', smtp_tls_security_level: 'encrypt' }
const MAILS: readonly MailSituation[] = [
  { id: 'one recipient', content: 'Subject: one\r\n\r\nHello.\r\n' },
  { id: 'two recipients', rcpt: ['r@', 's@'], content: 'Subject: two\r\n\r\n..dot\r\n' },
  { id: 'a refused recipient', rcpt: ['r@', '550@'], content: 'Subject: three\r\n\r\nHello.\r\n' },
]

const reason = reasonToSkip('interop', await postfixIsMissing())

async function observed<T>(
  options: PairOptions,
  observe: (system: System) => T,
  mails: readonly MailSituation[] = MAILS,
): Promise<readonly [deferd: T, postfix: T]> {
  const pair = await startPair(options)
  try {
    const both = [pair.deferd, pair.postfix] as const
    for (const [n, mail] of mails.entries()) await Promise.all(both.map((system) => submit(system, mail, n)))
    await expect.poll(() => mails.filter((mail, n) => !both.every((system) => isTried(system, mail, n)))).toEqual([])
    await settled(both, 1500)
    return [observe(pair.deferd), observe(pair.postfix)]
  } finally {
    await pair.stop()
  }
}

test.skipIf(reason !== null)('both deliver alike to a server with TLS from the start', async () => {
  const [deferd, postfix] = await observed({ settings: WRAPPER, secureSinks: true }, (system) =>
    MAILS.map(({ content }, n) => ({ log: facts(system, n), deliveries: deliveries(system, n, content) })),
  )
  for (const [n, { id }] of MAILS.entries()) {
    expect(deferd[n]?.log).toEqual(postfix[n]?.log)
    const [ours, theirs] = levelled(id, 'deliveries', [deferd[n]?.deliveries ?? [], postfix[n]?.deliveries ?? []], new Set())
    expect(ours).toEqual(theirs)
  }
  expect(deferd.map((mail) => mail.deliveries.length)).toEqual([1, 1, 1])
})

test.skipIf(reason !== null)('both defer with 4.7.5 at a server without TLS, and send nothing', async () => {
  const codes = (system: System) => MAILS.map((_, n) => facts(system, n).flatMap((line) => /dsn=\S+ status=\w+/.exec(line)?.[0] ?? []))
  const [deferd, postfix] = await observed({ settings: WRAPPER }, (system) => ({
    codes: codes(system),
    received: system.received.length,
  }))
  expect(deferd).toEqual(postfix)
  expect(deferd).toMatchObject({ codes: [['dsn=4.7.5, status=deferred'], expect.anything(), expect.anything()], received: 0 })
})

test.skipIf(reason !== null)('both ask the machine for the address of a relayhost, and defer alike when it does not exist', async () => {
  // Without DNS the private Postfix always asks the machine.
  const settings = { smtp_host_lookup: 'native', relayhost: '[does-not-exist.invalid]:25' }
  const [deferd, postfix] = await observed({ settings }, (system) => MAILS.map((_, n) => facts(system, n)))
  expect(deferd).toEqual(postfix)
  expect(deferd[0]?.join('\n')).toContain('unable to look up host does-not-exist.invalid: ')
})

const SENDERS = ['ann@a.test', 'Bob@A.test', 'c@sub.a.test', 'x@b.test', 'x@c.test', 'x@d.test', 'x@e.test', 'x@f.test', '']
const DOMAINS = ['far.test', 'open.test', 'sub.open.test', 'mapped.test', 'same.test', 'direct.test']

test.skipIf(reason !== null)('both choose transport and relayhost by sender alike', async () => {
  const sinks = [new SinkPort({}), new SinkPort({}), new SinkPort({})]
  const ports = (await Promise.all(sinks.map((sink) => sink.open()))).map(({ port }) => port)
  const hop = (nth: number) => `[127.0.0.1]:${ports[nth]}`
  const pairs = SENDERS.flatMap((sender) => DOMAINS.map((domain) => ({ sender, domain })))
  // An entry of transport_maps without a transport means smtp in deferd, whatever the transport of the sender.
  const compared = pairs.filter(({ sender, domain }) => sender !== 'x@d.test' || domain !== 'direct.test')
  const mails = compared.map(({ sender, domain }, n): MailSituation => {
    return { id: `<${sender}> to ${domain}`, sender, rcpt: [`r${n}@${domain}`], content: 'Subject: x\r\n\r\nx\r\n' }
  })
  /** Sink, status and reason of each mail; the texts of discard differ. */
  const outcomes = (system: System) =>
    mails.map(({ id }, n) => {
      const line = system.log().find((text) => text.includes(`to=<r${n}@`) && text.includes(' status=')) ?? ''
      const [, relay, dsn, result] = / relay=(\S+), .*dsn=(\S+), status=(.*)$/.exec(line) ?? []
      const sink = ports.indexOf(Number(/:(\d+)$/.exec(relay ?? '')?.[1]))
      return `${id}: ${relay === 'none' ? relay : `sink ${sink}`} ${dsn} ${result?.replace(/ as \w+| \((?:delivered|gone).*/, '')}`
    })
  try {
    const settings = {
      sender_dependent_relayhost_maps: `inline:{{ann@a.test = ${hop(0)}}, {@a.test = ${hop(1)}}, {@b.test = DUNNO}, {@e.test = ${hop(0)}}, {<> = ${hop(1)}}}`,
      sender_dependent_default_transport_maps: `inline:{{@c.test = smtp:${hop(2)}}, {@d.test = discard:gone}, {@e.test = smtp}, {@f.test = smtp:${hop(2)}}}`,
    }
    const transportMaps = { 'mapped.test': `smtp:${hop(2)}`, 'same.test': ':', 'direct.test': `:${hop(0)}` }
    const [deferd, postfix] = await observed({ settings, transportMaps }, outcomes, mails)
    expect(deferd).toEqual(postfix)
    expect(new Set(deferd.map((line) => /: (sink \S+|none)/.exec(line)?.[1])).size).toBe(5)
  } finally {
    for (const sink of sinks) sink.close()
  }
})
