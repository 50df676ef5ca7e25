/** Routes of the lab, its worlds and their clocks. */
import { z } from 'zod'
import { json, type ApiRoute } from '../api/route/api-route.ts'
import { isoInstant } from '../mail/mail-date.ts'
import { SECOND } from '../system/clock.ts'
import { VERSION } from '../system/version.ts'
import { HTTP_PROBLEMS } from '../http/problem-details.ts'
import type { Answer } from '../http/route-table.ts'
import { WORLD_CA } from '../testkit/remote/world-certificates.ts'
import { SERVER_TLS } from '../testkit/options/world-server.ts'
import { DEFAULT_STORE, WORLD_STORES } from '../testkit/options/world-stores.ts'
import type { Lab } from './lab.ts'
import { LAB_PROBLEMS } from './lab-problems.ts'
import { advanceTime, instant, labRoute, milliseconds, optionalJson, seconds, signedTime, time, within, worldRoute } from './lab-route.ts'
import type { LabWorld } from './lab-world.ts'

const labShape = z
  .object({
    version: z.string(),
    worlds: z.int(),
    uptime: seconds,
    limits: z.object({ max_worlds: z.int(), idle: seconds.describe('0 for none'), lifetime: seconds }),
  })
  .meta({ id: 'Lab' })

const sessionShape = z.object({
  client: z.string(),
  stage: z.string().describe('last command of the client'),
  in_transaction: z.boolean(),
  waits_until: instant.nullable().describe('for a client that waits for a reply while nothing but the clock can go on: the next instant'),
})

const clockMembers = {
  now: instant,
  elapsed: seconds.describe('seconds since the start of the world'),
  speed: z.number().describe('0 for a clock that stands; 1 for real time'),
  next: z.object({ in: seconds, what: z.string() }).nullable().describe('the next timer'),
  accepted: z.int().describe('messages that clients have sent to the relay'),
  sessions: z.array(sessionShape),
}

export const clockShape = z.object(clockMembers).meta({ id: 'Clock' })

const worldShape = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    seed: z.int(),
    store: z.enum(WORLD_STORES),
    smtp: z
      .object({
        host: z.string(),
        port: z.int(),
        tls: z.enum(SERVER_TLS),
        ca: z.string().nullable().describe('certificate (PEM) of the authority to trust in tests; null without TLS'),
      })
      .nullable()
      .describe('port of the relay; null for a world without one'),
    remote_ports: z.array(z.object({ mx: z.string(), host: z.string(), port: z.int() })).describe('ports of remote hosts'),
    lab_defaults: z.record(z.string(), z.string()).describe('parameters whose defaults differ in the lab'),
    is_up: z.boolean().describe('false between a crash and the next start, and for a world without a relay'),
    expires: instant.nullable().describe('end without another request, in real time'),
    ...clockMembers,
  })
  .meta({ id: 'World' })

function worldJson(lab: Lab, world: LabWorld): z.output<typeof worldShape> {
  const { id, name, seed, store, tls, smtp, remotePorts, defaults } = world.facts
  const expires = lab.expiryOf(world)
  return {
    id,
    name,
    seed,
    store,
    smtp: smtp === null ? null : { host: smtp.address, port: smtp.port, tls, ca: tls === 'none' ? null : WORLD_CA },
    remote_ports: remotePorts.map(({ mx, at: { address, port } }) => ({ mx, host: address, port })),
    lab_defaults: { ...defaults },
    is_up: world.isUp,
    expires: expires === null ? null : isoInstant(expires),
    ...clockJson(world),
  }
}

const clockJson = (world: LabWorld): z.output<typeof clockShape> => {
  const { sessions, ...clock } = world.clock()
  return { ...clock, sessions: [...sessions] }
}

export const clockAnswer = (world: LabWorld): Answer => json(clockJson(world))

/** Names that cannot be taken for an id. */
const worldName = z
  .string()
  .regex(/^(?!w\d+$)[\w.-]{1,64}$/, 'expected 1 to 64 letters, digits, dots, hyphens or underscores, other than w and a number')

const isZone = (name: string): boolean => {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** Name of a mail exchanger. */
const hostName = z
  .string()
  .regex(/^[\w-]+(?:\.[\w-]+)*$/, 'expected the name of a host such as "mx.slow.example"')
  .max(255)
  .toLowerCase()

const newWorldShape = z
  .strictObject({
    seed: z.int().default(1).describe('seed of all random numbers'),
    config: z.record(z.string(), z.unknown()).default({}).describe('parameters and tables of docs/configuration.md'),
    script: z.string().max(1_000_000).optional().describe('script of the remote servers (docs/faults.md), as TOML'),
    zone: z
      .string()
      .max(100)
      .refine(isZone, 'expected an IANA name such as "Europe/Berlin"')
      .optional()
      .describe('local zone of the relay; UTC when absent'),
    store: z.enum(WORLD_STORES).default(DEFAULT_STORE).describe('queue in plain memory, or in an SQLite database in memory'),
    speed: z.number().min(0).max(1_000_000).default(0).describe('0: the clock stands; 1: real time; 3600: an hour per second'),
    name: worldName.nullable().default(null),
    tls: z.enum(SERVER_TLS).default('none').describe('STARTTLS at the SMTP port, with a certificate for localhost'),
    users: z
      .record(z.string().min(1).max(256), z.string().max(1_000))
      .optional()
      .describe('passwords of the users that may log in, by name; AUTH is offered over TLS only'),
    relay: z.boolean().default(true).describe('false for a world of remote ports alone'),
    remote_ports: z
      .array(hostName)
      .max(64)
      .refine((names) => new Set(names).size === names.length, 'each host once')
      .default([])
      .describe('names of remote hosts that listen on free ports, for relays in other processes; that of a domain is mx.DOMAIN'),
  })
  .refine(({ users, tls }) => users === undefined || tls !== 'none', {
    path: ['users'],
    message: 'expected "tls": "starttls" beside them, since AUTH is offered over TLS only',
  })
  .check(({ value, issues }) => {
    if (value.relay) return
    const wrong = (path: keyof typeof value, message: string) => issues.push({ code: 'custom', input: value[path], path: [path], message })
    if (value.remote_ports.length === 0) wrong('remote_ports', 'a world without a relay needs remote ports')
    if (Object.keys(value.config).length > 0) wrong('config', 'a world without a relay has no configuration')
    if (value.tls !== 'none') wrong('tls', 'a world without a relay has no SMTP port: offers_tls gives a remote host TLS')
  })

/** The worlds. */
export const worldRoutes = (lab: Lab): readonly ApiRoute[] => [
  labRoute({
    method: 'GET',
    path: '/',
    summary: 'The lab, its limits and the number of its worlds',
    answers: { 200: { about: 'the lab', shape: labShape } },
    handler: () => {
      const { maxWorlds, idle, lifetime } = lab.limits
      const limits = { max_worlds: maxWorlds, idle: idle / SECOND, lifetime: lifetime / SECOND }
      return json({ version: VERSION, worlds: lab.worlds.length, uptime: lab.uptime, limits })
    },
  }),
  labRoute({
    method: 'POST',
    path: '/worlds',
    summary: 'Create a world',
    about:
      'A relay on a clock of its own, with an SMTP port, and remote servers that accept all mail until a rule says otherwise. All members are optional. Parameters that open files, programs or sockets are refused. `remote_ports` lets another relay send to the remote servers.',
    body: optionalJson(newWorldShape),
    example: { seed: 7, config: { maximal_queue_lifetime: '5d' } },
    answers: { 201: { about: 'the world', shape: worldShape } },
    problems: [LAB_PROBLEMS.nameTaken, LAB_PROBLEMS.tooManyWorlds],
    handler: async ({ body: { remote_ports: remotePorts, ...asked } }) => {
      const world = await lab.createFromRequest({ ...asked, remotePorts })
      return { kind: 'json', status: 201, value: worldJson(lab, world) }
    },
  }),
  labRoute({
    method: 'GET',
    path: '/worlds',
    summary: 'The open worlds',
    answers: { 200: { about: 'the worlds', shape: z.object({ worlds: z.array(worldShape) }) } },
    handler: () => json({ worlds: lab.worlds.map((world) => worldJson(lab, world)) }),
  }),
  worldRoute(lab, {
    method: 'GET',
    path: '',
    summary: 'A world, by id or name',
    answers: { 200: { about: 'the world', shape: worldShape } },
    handler: (world) => json(worldJson(lab, world)),
  }),
  worldRoute(lab, {
    method: 'DELETE',
    path: '',
    summary: 'Close a world and its SMTP port',
    answers: { 204: { about: 'closed' } },
    handler: async (world) => {
      await lab.delete(world)
      return { kind: 'text', status: 204, contentType: 'text/plain', text: '' }
    },
  }),
]

const acceptedCount = z.union([
  z.int().min(0),
  z.string().regex(/^\+\d{1,9}$/, 'expected a number, or "+1" for one more than at the last call that named it'),
])

const after = z
  .strictObject({
    accepted: acceptedCount
      .optional()
      .describe('messages that the relay has accepted since the start; "+1": one more than at the last call that named it'),
    sessions: z.literal('idle').optional().describe('no client is inside a transaction'),
    requests: z.record(z.string(), z.int().min(0)).optional().describe('requests that webhooks have got, by name'),
  })
  .default({})
  .describe('conditions that are waited for in real time before the clock advances')

const advanceBody = z.strictObject({ by: advanceTime, after, within })
const settleBody = z.strictObject({
  after,
  within,
  at_most: advanceTime.default('30d').describe('time of the world after which the call fails'),
})

/** Advances of the clock of a world. */
const advanceRoutes = (lab: Lab): readonly ApiRoute[] => [
  worldRoute(lab, {
    method: 'POST',
    path: '/clock/advance',
    summary: 'Advance the clock by a time',
    about: 'Everything that is due up to and including the end happens, with its consequences at that instant.',
    body: optionalJson(advanceBody),
    example: { by: '2d', after: { accepted: 1 } },
    answers: { 200: { about: 'the clock', shape: clockShape } },
    problems: [LAB_PROBLEMS.notYet, LAB_PROBLEMS.tooMuchWork, HTTP_PROBLEMS.unknown],
    handler: (world, { body, signal }) =>
      world.inOrder(async () => {
        await world.advance(milliseconds(body.by), { after: body.after, within: milliseconds(body.within), signal })
        return clockAnswer(world)
      }),
  }),
  worldRoute(lab, {
    method: 'POST',
    path: '/clock/settle',
    summary: 'Advance the clock until the queue is empty',
    about: 'Without `after`, mail that the application has not sent yet is not waited for.',
    body: optionalJson(settleBody),
    example: { after: { accepted: 1 }, within: '5s' },
    answers: {
      200: { about: 'the clock, and the time that has passed', shape: clockShape.extend({ passed: seconds }).meta({ id: 'Settled' }) },
    },
    problems: [LAB_PROBLEMS.notYet, LAB_PROBLEMS.cannotSettle, LAB_PROBLEMS.tooMuchWork, HTTP_PROBLEMS.unknown],
    handler: (world, { body, signal }) =>
      world.inOrder(async () => {
        const passed = await world.settle(milliseconds(body.at_most), { after: body.after, within: milliseconds(body.within), signal })
        return json({ ...clockJson(world), passed: passed / SECOND })
      }),
  }),
]

/** Crash and restart of the relay of a world. */
const relayRoutes = (lab: Lab): readonly ApiRoute[] => [
  worldRoute(lab, {
    method: 'POST',
    path: '/crash',
    summary: 'Kill the relay as kill -9 does',
    about: 'Connections are reset, and refused while the relay is down. Acknowledged mail is kept.',
    body: optionalJson(z.strictObject({ down_for: time.default(0) })),
    example: { down_for: '10m' },
    answers: { 200: { about: 'the clock', shape: clockShape } },
    problems: [LAB_PROBLEMS.relayDown],
    handler: (world, { body }) =>
      world.inOrder(async () => {
        await world.crash(milliseconds(body.down_for))
        return clockAnswer(world)
      }),
  }),
  worldRoute(lab, {
    method: 'POST',
    path: '/restart',
    summary: 'Stop the relay and start it again on the same queue',
    body: optionalJson(z.strictObject({})),
    answers: { 200: { about: 'the clock', shape: clockShape } },
    problems: [LAB_PROBLEMS.relayDown],
    handler: (world) =>
      world.inOrder(async () => {
        world.assertUp()
        await world.world.restart()
        return clockAnswer(world)
      }),
  }),
]

/** The clock of a world, and its relay. */
export const clockRoutes = (lab: Lab): readonly ApiRoute[] => [
  worldRoute(lab, {
    method: 'GET',
    path: '/clock',
    summary: 'The clock',
    about: 'Answered at once, also while another call advances the clock.',
    answers: { 200: { about: 'the clock', shape: clockShape } },
    handler: (world) => clockAnswer(world),
  }),
  ...advanceRoutes(lab),
  worldRoute(lab, {
    method: 'POST',
    path: '/clock/step',
    summary: 'Set the wall clock forward, or back',
    about: 'Waits and timers stay as they are; the dates of mail follow.',
    body: optionalJson(z.strictObject({ by: signedTime })),
    example: { by: '-2h' },
    answers: { 200: { about: 'the clock', shape: clockShape } },
    handler: (world, { body }) =>
      world.inOrder(() => {
        world.world.stepClock(body.by)
        return clockAnswer(world)
      }),
  }),
  worldRoute(lab, {
    method: 'PUT',
    path: '/clock/speed',
    summary: 'Set the speed of the clock',
    body: optionalJson(z.strictObject({ speed: z.number().min(0).max(1_000_000) })),
    example: { speed: 3600 },
    answers: { 200: { about: 'the clock', shape: clockShape } },
    handler: (world, { body }) =>
      world.inOrder(() => {
        world.speed = body.speed
        return clockAnswer(world)
      }),
  }),
  ...relayRoutes(lab),
]
