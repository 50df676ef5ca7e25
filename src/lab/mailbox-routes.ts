/** Routes of the mail that remote servers have kept, and of mail that is submitted without SMTP. */
import { z } from 'zod'
import { createTransport } from 'nodemailer'
import { json, type ApiRoute } from '../api/route/api-route.ts'
import { HTTP_PROBLEMS, Problem } from '../http/problem-details.ts'
import { streamBody } from '../http/request-body.ts'
import type { Lab } from './lab.ts'
import { LAB_PROBLEMS } from './lab-problems.ts'
import { LARGEST_BODY, advanceTime, milliseconds, within, worldRoute } from './lab-route.ts'
import type { LabWorld } from './lab-world.ts'
import { listedMail, mailShape, mailsOf, wholeMail, wholeMailShape } from './kept-mail.ts'
import { partContent } from '../mail/mime/parsed-mail.ts'
import { mailConditions, matcherOf, missingMail } from './mail-conditions.ts'
import { SECOND } from '../system/clock.ts'

const mailboxesShape = z.object({ mailboxes: z.array(z.object({ address: z.string(), mails: z.int() })) })

const waitQuery = mailConditions({
  within,
  advance: advanceTime.optional().describe('time of the world that may pass; without it, only real time passes'),
  count: z.coerce.number().int().min(1).max(10_000).default(1).describe('number of mails that must match; the last of them is answered'),
})

const NOTHING_ACCEPTED = 'no message was accepted before the clock advanced: settle with {"after": {"accepted": 1}} waits for the first'

/** Waits for a mail. Resolves with it and the time of the world that has passed. */
async function awaitMail(
  world: LabWorld,
  address: string,
  { query, signal }: { readonly query: z.output<typeof waitQuery>; readonly signal: AbortSignal },
): Promise<z.output<typeof wholeMailShape>> {
  const { count, advance } = query
  const limit = milliseconds(query.within)
  const matches = matcherOf(query)
  const found = () => mailsOf(world.world, address).filter(matches)[count - 1]
  const { clock } = world.world
  const start = clock.monotonic()
  if (advance === undefined) await world.until(() => found() !== undefined, { within: limit, signal })
  else {
    const end = start + milliseconds(advance)
    await world.runTimers((at) => at > end || found() !== undefined)
    if (found() === undefined) await world.world.advance(`${Math.max(0, end - clock.monotonic())}ms`)
  }
  const mail = found()
  if (mail !== undefined) return wholeMail(world.world, mail, { link: query.link, passed: (clock.monotonic() - start) / SECOND })
  const waited = advance === undefined ? `${limit / SECOND}s` : `${(clock.monotonic() - start) / SECOND}s of the world`
  const early = advance !== undefined && world.world.accepted === 0 ? `; ${NOTHING_ACCEPTED}` : ''
  throw new Problem(LAB_PROBLEMS.notYet, missingMail(world.world, address, waited) + early)
}

const listQuery = mailConditions({})

const found = (world: LabWorld, id: string | undefined) => {
  const mail = world.world.received[Number(id) - 1]
  if (mail === undefined || !/^\d+$/.test(id ?? ''))
    throw new Problem(HTTP_PROBLEMS.unknown, `there is no mail ${id}: the world has ${world.world.received.length}`)
  return { id: Number(id), mail }
}

const octets = (content: Uint8Array, contentType: string) => ({ kind: 'stream', contentType, chunks: oneChunk(content) }) as const

async function* oneChunk(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content
}

const listRoutes = (lab: Lab): readonly ApiRoute[] => [
  worldRoute(lab, {
    method: 'GET',
    path: '/mailboxes',
    summary: 'Addresses that have mail',
    answers: { 200: { about: 'the mailboxes', shape: mailboxesShape } },
    handler: (world) =>
      world.inOrder(() => {
        const counts = new Map<string, number>()
        for (const { recipients } of world.world.received) for (const one of recipients) counts.set(one, (counts.get(one) ?? 0) + 1)
        return json({ mailboxes: [...counts].map(([address, mails]) => ({ address, mails })) })
      }),
  }),
  worldRoute(lab, {
    method: 'GET',
    path: '/mailboxes/:address',
    summary: 'Mail of an address, newest last',
    query: listQuery,
    answers: { 200: { about: 'the mail', shape: z.object({ address: z.string(), mails: z.array(mailShape) }) } },
    handler: (world, { parameters, query }) =>
      world.inOrder(() => {
        const { address } = world.world.mailbox(parameters['address'] ?? '')
        return json({ address, mails: mailsOf(world.world, address).filter(matcherOf(query)).map(listedMail) })
      }),
  }),
  worldRoute(lab, {
    method: 'GET',
    path: '/mailboxes/:address/wait',
    summary: 'Wait for a mail',
    about:
      'The first mail that satisfies all conditions, complete. `header.NAME` is a condition on a header field. Without `advance` only real time passes: for mail that the application sends now. With it, the clock of the world advances from timer to timer until the mail is there.',
    query: waitQuery,
    answers: { 200: { about: 'the mail', shape: wholeMailShape } },
    problems: [LAB_PROBLEMS.notYet, LAB_PROBLEMS.tooMuchWork],
    handler: (world, { parameters, query, signal }) =>
      world.inOrder(async () => json(await awaitMail(world, world.world.mailbox(parameters['address'] ?? '').address, { query, signal }))),
  }),
]

const mailRoutes = (lab: Lab): readonly ApiRoute[] => [
  worldRoute(lab, {
    method: 'GET',
    path: '/mails/:id',
    summary: 'A mail, parsed',
    query: z.strictObject({
      link: z.string().min(1).max(2_000).optional().describe('only links whose URL or text matches; * matches any text'),
    }),
    answers: { 200: { about: 'the mail', shape: wholeMailShape } },
    problems: [HTTP_PROBLEMS.unknown],
    handler: (world, { parameters, query }) =>
      world.inOrder(() => json(wholeMail(world.world, found(world, parameters['id']), { link: query.link, passed: 0 }))),
  }),
  worldRoute(lab, {
    method: 'GET',
    path: '/mails/:id/raw',
    summary: 'A mail as it was received',
    answers: { 200: { about: 'header and body', type: 'message/rfc822' } },
    problems: [HTTP_PROBLEMS.unknown],
    handler: (world, { parameters }) => world.inOrder(() => octets(found(world, parameters['id']).mail.content, 'message/rfc822')),
  }),
  worldRoute(lab, {
    method: 'GET',
    path: '/mails/:id/parts/:part',
    summary: 'Decoded octets of a part of a mail',
    answers: { 200: { about: 'the octets', type: 'application/octet-stream' } },
    problems: [HTTP_PROBLEMS.unknown],
    handler: (world, { parameters: { id, part } }) =>
      world.inOrder(() => {
        const content = partContent(found(world, id).mail.content, Number(part))
        if (content === null) throw new Problem(HTTP_PROBLEMS.unknown, `mail ${id} has no part ${part}: GET the mail for its attachments`)
        return octets(content, 'application/octet-stream')
      }),
  }),
]

const submittedShape = z
  .object({ accepted: z.array(z.string()), rejected: z.array(z.string()), reply: z.string() })
  .meta({ id: 'Submitted' })

const addresses = z.union([z.string().min(1).max(1_000), z.array(z.string().min(1).max(1_000)).max(1_000)])

/** Sends mail to the relay of the world by SMTP in memory. A refusal of the relay is an answer. */
async function submit(world: LabWorld, raw: Buffer, { from, to }: { readonly from: string; readonly to: string | readonly string[] }) {
  const recipients = typeof to === 'string' ? [to] : [...to]
  const transport = createTransport(world.world.transport())
  try {
    const { accepted, rejected, response } = await transport.sendMail({ envelope: { from, to: recipients }, raw })
    return { accepted: accepted.map(String), rejected: rejected.map(String), reply: response }
  } catch (error) {
    const { response } = error as { readonly response?: unknown }
    if (typeof response !== 'string') throw error
    return { accepted: [], rejected: recipients, reply: response }
  }
}

const submissionRoute = (lab: Lab): ApiRoute =>
  worldRoute(lab, {
    method: 'POST',
    path: '/messages',
    summary: 'Submit a message without SMTP',
    query: z.strictObject({ from: z.string().max(1_000).describe('reverse-path'), to: addresses.describe('recipient; repeatable') }),
    body: streamBody(['message/rfc822'], () => LARGEST_BODY),
    bodies: { 'message/rfc822': null },
    answers: {
      201: { about: 'the reply of the relay', shape: submittedShape },
      200: { about: 'the relay accepted it for nobody', shape: submittedShape },
    },
    problems: [LAB_PROBLEMS.relayDown, LAB_PROBLEMS.full],
    handler: async (world, { body, query }) => {
      const raw = await body.collected()
      return world.inOrder(async () => {
        world.assertUp()
        world.assertRoom()
        const value = await submit(world, raw, query)
        return { kind: 'json', status: value.accepted.length > 0 ? 201 : 200, value }
      })
    },
  })

export const mailboxRoutes = (lab: Lab): readonly ApiRoute[] => [...listRoutes(lab), ...mailRoutes(lab), submissionRoute(lab)]
