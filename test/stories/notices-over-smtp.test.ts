/** MAILER-DAEMON in a whole world: real SMTP on both sides, and an outcome for every recipient, for any reply of the remote server. */
import fc from 'fast-check'
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import type { Notify } from '../../src/mail/envelope.ts'
import { postfixLines } from '../../src/telemetry/log-records.ts'
import { createWorld, type World } from '../../src/testkit/index.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'

const APP = 'app@us.example'

function send(world: World, to: readonly string[], notify?: Exclude<Notify, 'never'>): Promise<unknown> {
  const dsn =
    notify === undefined ? undefined : { id: 'QQ314159', return: 'headers' as const, notify: [...notify], recipient: `rfc822;${APP}` }
  return createTransport(world.transport()).sendMail({ from: APP, to: [...to], subject: 'hi', text: 'hello', dsn })
}

/** The RCPT commands that the remote server received, except those of notices. */
const rcptLines = (world: World): readonly string[] =>
  world.history().events.flatMap((entry) => {
    const command = entry.where === 'remote' && entry.event.event === 'reply' ? entry.event.command : undefined
    return command?.startsWith('RCPT') === true && !command.startsWith(`RCPT TO:<${APP}>`) ? [command] : []
  })

test('NOTIFY=SUCCESS is passed to a next hop that announces DSN, and reported for one that does not', async () => {
  await using world = await createWorld()
  world.rule({ at: 'ehlo', domain: 'plain.example', extensions: ['PIPELINING', '8BITMIME'] })
  await send(world, ['ann@dsn.example'], ['success'])
  await send(world, ['bob@plain.example'], ['success'])
  await world.settle()
  expect(rcptLines(world)).toEqual(['RCPT TO:<ann@dsn.example> NOTIFY=SUCCESS ORCPT=rfc822;app@us.example', 'RCPT TO:<bob@plain.example>'])
  expect(world.recipient('ann@dsn.example').notices).toEqual([])
  const notices = world.mailbox(APP).notices()
  expect(notices.map(({ action, recipients }) => [action, recipients.map(({ recipient }) => recipient)])).toEqual([
    ['relayed', ['bob@plain.example']],
  ])
  expect(notices[0]).toMatchObject({ envid: 'QQ314159', original: expect.stringMatching(/^Return-Path: <app@us\.example>\r\n/) })
  expect(notices[0]?.original).not.toContain('hello')
})

test('soft_bounce defers rejected mail, logs SOFTBOUNCE, and notifies the sender at its expiry', async () => {
  await using world = await createWorld({ config: { soft_bounce: true, maximal_queue_lifetime: '1d' } })
  const log: string[] = []
  world.relayEvents.listen((event) => log.push(...postfixLines(event).map(({ text }) => text)))
  world.destination('picky.example').rejects('*', '550 5.1.1 no such user')
  await send(world, ['bob@picky.example'])
  await world.advance('23h')
  expect(world.mailbox(APP).notices()).toEqual([])
  const attempts = world.attempts('bob@picky.example')
  expect(attempts.every(({ outcome, status }) => outcome === 'deferred' && status === '4.1.1')).toBe(true)
  expect(log.filter((line) => line.includes('dsn=4.1.1, status=SOFTBOUNCE (host mx.picky.example['))).toHaveLength(attempts.length)
  await world.settle()
  expect(world.mailbox(APP).notices()).toMatchObject([
    { action: 'failed', recipients: [{ recipient: 'bob@picky.example', status: '4.1.1', diagnostic: '550 5.1.1 no such user' }] },
  ])
})

// --- every recipient has an outcome

const STAGES = ['greeting', 'ehlo', 'mail', 'rcpt', 'data', 'end-of-data'] as const
const MANNERS = ['2xx', '4xx', '5xx', 'drop', 'stall'] as const

interface Fault {
  readonly stage: (typeof STAGES)[number]
  readonly manner: (typeof MANNERS)[number]
  /** So often, then all is well; for ever when absent. */
  readonly first: number | undefined
}

const fault: fc.Arbitrary<Fault> = fc.record({
  stage: fc.constantFrom(...STAGES),
  manner: fc.constantFrom(...MANNERS),
  first: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
})
const DOMAINS = ['a.example', 'b.example', 'c.example'] as const
const story = fc.record({
  /** Behaviour of each domain. */
  faults: fc.array(fault, { minLength: DOMAINS.length, maxLength: DOMAINS.length }),
  /** One entry for each recipient: its domain, and the reply to RCPT. */
  recipients: fc.array(fc.record({ domain: fc.nat(DOMAINS.length - 1), manner: fc.constantFrom(...MANNERS) }), {
    minLength: 1,
    maxLength: 8,
  }),
  looksAfter: fc.integer({ min: 0, max: 90 }),
})

const REPLIES = { '4xx': '450 4.2.0 later', '5xx': '550 5.1.1 never' } as const

function tell(world: World, where: { readonly domain: string; readonly recipient?: string }, { stage, manner, first }: Fault): void {
  const when = first === undefined ? {} : { first }
  if (manner === '4xx' || manner === '5xx') world.rule({ ...where, ...when, at: stage, reply: REPLIES[manner] })
  else if (manner === 'drop') world.rule({ ...where, ...when, at: stage, drop: 'fin' })
  else if (manner === 'stall') world.rule({ ...where, ...when, at: stage, stall: true })
}

/** Recipients of the app's mail that are in the queue. */
const alive = async (world: World): Promise<readonly string[]> =>
  (await world.reader.list({ ...ANY_MESSAGE, sender: APP }, { after: 0, limit: 100 })).flatMap(({ recipients }) =>
    recipients.map(({ address }) => address),
  )

/** Each address once, by how it ended or that it has not. */
async function account(world: World, to: readonly string[]) {
  const living = await alive(world)
  const ended = (outcome: string) => to.filter((address) => world.attempts(address).some((attempt) => attempt.outcome === outcome))
  return { alive: living, delivered: ended('delivered'), bounced: ended('bounced'), expired: ended('expired') }
}

test('accepted = delivered ∪ bounced ∪ expired ∪ live, each once, and each failure is reported once', async () => {
  const met = new Map<string, number>()
  const property = fc.asyncProperty(story, async ({ faults, recipients, looksAfter }) => {
    await using world = await createWorld({ config: { maximal_queue_lifetime: '1h' } })
    const to = recipients.map(({ domain }, n) => `r${n}@${DOMAINS[domain]}`)
    faults.forEach((one, n) => tell(world, { domain: DOMAINS[n] ?? '' }, one))
    recipients.forEach(({ domain, manner }, n) =>
      tell(world, { domain: DOMAINS[domain] ?? '', recipient: to[n] ?? '' }, { stage: 'rcpt', manner, first: undefined }),
    )
    await send(world, to)
    await world.advance(`${looksAfter}m`)
    const meanwhile = Object.values(await account(world, to)).flat()
    expect(meanwhile.toSorted()).toEqual(to.toSorted())
    await world.settle()
    const { delivered, bounced, expired } = await account(world, to)
    expect([...delivered, ...bounced, ...expired].toSorted()).toEqual(to.toSorted())
    for (const address of delivered) expect(world.mailbox(address).mails().length).toBeGreaterThan(0)
    const told = world
      .mailbox(APP)
      .notices()
      .flatMap((notice) => notice.recipients.map(({ recipient }) => recipient))
    expect(told.toSorted()).toEqual([...bounced, ...expired].toSorted())
    for (const [kind, who] of Object.entries({ delivered, bounced, expired })) met.set(kind, (met.get(kind) ?? 0) + who.length)
  })
  await fc.assert(property, { numRuns: 150 })
  for (const kind of ['delivered', 'bounced', 'expired']) expect(met.get(kind), kind).toBeGreaterThan(20)
})
