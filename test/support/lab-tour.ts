/**
 * A scripted tour of the API of a lab, which gives each operation an example of its answer. TestLab compares each answer with the OpenAPI
 * document.
 */
import { LAB_BASE } from '../../src/lab/lab-route.ts'
import { labRoutes } from '../../src/lab/lab-server.ts'
import { TestLab, type LabReply } from './lab-client.ts'
import { ResponseExamples } from './response-examples.ts'
import { VERB_CALLS } from './verb-calls.ts'

/** Operations without an example, with the reason. */
export const LAB_WITHOUT_EXAMPLE: Readonly<Record<string, string>> = {
  'DELETE /worlds/:world': 'no content',
  'GET /worlds/:world/events/stream': 'events without an end',
  'GET /worlds/:world/mails/:id/raw': 'no JSON',
  'GET /worlds/:world/mails/:id/parts/:part': 'no JSON',
  'GET /openapi.json': 'the document itself',
}

/** Values that are those of the machine, by their member. */
const STEADY: Readonly<Record<string, unknown>> = { uptime: 12.5, port: 40_025, expires: '2026-01-01T00:10:00.000Z' }

const steady = (value: unknown): unknown => JSON.parse(JSON.stringify(value), (key, inner: unknown) => STEADY[key] ?? inner) as unknown

class Tour {
  readonly examples: ResponseExamples
  readonly #lab: TestLab

  constructor(lab: TestLab) {
    this.#lab = lab
    this.examples = new ResponseExamples(labRoutes(lab.lab), LAB_BASE)
  }

  async ask(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<LabReply> {
    const reply = await this.#lab.ask(method, path, body, headers)
    this.examples.keep(method, path, { ...reply, json: reply.json === undefined ? undefined : steady(reply.json) })
    return reply
  }

  async post(paths: readonly (readonly [string, object?])[]): Promise<void> {
    for (const [path, body = {}] of paths) await this.ask('POST', path, body)
  }

  async get(...paths: readonly string[]): Promise<void> {
    for (const path of paths) await this.ask('GET', path)
  }
}

/** A world with a quota. */
const WORLD = { name: 'signup', seed: 1, config: { quota: { app: { keys: 'sender', limits: ['1000/1h'] } } } }

const MAIL = 'From: app@us.example\r\nTo: ann@slow.example\r\nSubject: Your code\r\n\r\nIt is 4711.\r\n'

async function clock(tour: Tour, world: string): Promise<void> {
  await tour.get(`${world}/clock`)
  await tour.post([
    [`${world}/clock/advance`, { by: '1m' }],
    [`${world}/clock/step`, { by: '1h' }],
    [`${world}/crash`],
    [`${world}/restart`],
    [`${world}/clock/settle`],
  ])
  await tour.ask('PUT', `${world}/clock/speed`, { speed: 1 })
  await tour.ask('PUT', `${world}/clock/speed`, { speed: 0 })
}

async function rules(tour: Tour, world: string): Promise<void> {
  await tour.post([[`${world}/rules`, { domain: 'far.example', at: 'rcpt', recipient: 'ann@*', reply: '450 4.2.1 busy', first: 2 }]])
  await tour.get(`${world}/rules`)
  await tour.ask('DELETE', `${world}/rules/1`)
  await tour.ask('DELETE', `${world}/rules?domain=far.example`)
  await tour.post(VERB_CALLS.map(([verb, body]) => [`${world}/destinations/x.example/${verb}`, body]))
}

async function webhook(tour: Tour, world: string): Promise<void> {
  await tour.post([
    [`${world}/webhooks`, { name: 'app', types: ['recipient.delivered'] }],
    [`${world}/webhooks/app/script`, { replies: 500, first: 1 }],
  ])
}

async function mail(tour: Tour, world: string): Promise<void> {
  const submit = (to: string): Promise<LabReply> =>
    tour.ask('POST', `${world}/messages?from=app@us.example&to=${to}`, MAIL, { 'content-type': 'message/rfc822' })
  await tour.post([[`${world}/destinations/slow.example/greylists`, { delay: '5m' }]])
  await submit('ann@slow.example')
  // A recipient that the relay refuses.
  await submit('ann@-.example')
  await tour.get(`${world}/recipients`)
  await tour.post([[`${world}/operations`, { operation: 'hold' }]])
  await tour.post([[`${world}/operations`, { operation: 'release' }]])
  await tour.post([[`${world}/suspend`, { destination: 'slow.example' }]])
  await tour.post([[`${world}/resume`, { destination: 'slow.example' }]])
  await tour.get(`${world}/quotas/app@us.example`)
  await tour.get(`${world}/mailboxes/ann@slow.example/wait?advance=2d`, `${world}/mailboxes`, `${world}/mailboxes/ann@slow.example`)
  await tour.get(`${world}/mails/1`, `${world}/recipients/ann@slow.example`, `${world}/events`, `${world}/history`)
  await tour.post([[`${world}/asserts`, { recipient: 'ann@slow.example', matcher: 'was_attempted_at', args: [0, 300] }]])
  await tour.get(`${world}/webhooks/app/requests`)
  await tour.post([[`${world}/webhooks/app/replay`, { kind: 'parked' }]])
}

/** Examples of answers by operation, such as `GET /worlds`. */
export async function labExamples(): Promise<ReadonlyMap<string, unknown>> {
  await using lab = await TestLab.open()
  const tour = new Tour(lab)
  await tour.get('/')
  const {
    json: { id },
  } = await tour.ask('POST', '/worlds', WORLD)
  const world = `/worlds/${id}`
  await tour.get('/worlds', world)
  await webhook(tour, world)
  await mail(tour, world)
  await rules(tour, world)
  await clock(tour, world)
  return tour.examples.answers
}
