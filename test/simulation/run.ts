/** Runs a relay through a scenario and returns the history. */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HOUR, MINUTE, SECOND, type Duration } from '../../src/system/clock.ts'
import { parseDuration } from '../../src/system/duration.ts'
import type { OperationName } from '../../src/queue/operation-request.ts'
import { queueIdOf } from '../../src/mail/message.ts'
import type { MessageDetails, QueueReader } from '../../src/store/queue-reader.ts'
import { ANY_MESSAGE, type QueueFilter } from '../../src/store/message-conditions.ts'
import { type History, type Webhook, type World, type WorldConfig } from '../../src/testkit/index.ts'
import { createObservedWorld } from '../../src/testkit/create-world.ts'
import { contentOf, submit } from './client.ts'
import { receive, receivedBy } from './receiver.ts'
import { Recorder } from './recorder.ts'
import type { Arrived, Story } from './record.ts'
import { rewritingConfig } from './rewriting.ts'
import { sharesConfig } from './shares/shared-scenario.ts'
import { OWN_DOMAIN, providerConfig, type Mail, type Scenario, type Step } from './scenario.ts'

export interface Run {
  readonly scenario: Scenario
  readonly history: History
  /** Number of commits. */
  readonly commits: number
}

export async function run(scenario: Scenario): Promise<Run> {
  const directory = scenario.storage === 'file' ? mkdtempSync(join(tmpdir(), 'deferd-simulation-')) : null
  try {
    return await new Running(scenario).run(directory)
  } finally {
    if (directory !== null) rmSync(directory, { recursive: true })
  }
}

type Order = Extract<Step, { readonly do: OperationName | 'restart' | 'suspend' | 'resume' }>

class Running {
  readonly #scenario: Scenario
  readonly #recorder: Recorder
  #hook: Webhook | null = null

  constructor(scenario: Scenario) {
    this.#scenario = scenario
    this.#recorder = new Recorder(scenario)
  }

  async run(directory: string | null): Promise<Run> {
    const world = await this.#begin(directory)
    for (const step of this.#scenario.steps) {
      await advanceTo(world, step.at)
      await this.#make(world, step)
    }
    await this.#end(world)
    const history = world.history()
    await world.close()
    return { scenario: this.#scenario, history, commits: this.#recorder.commits }
  }

  async #begin(directory: string | null): Promise<World> {
    const { seed, config, tables, faults, commitTakes, rewriting, receiver, shares } = this.#scenario
    const ofParts = { ...rewritingConfig(rewriting), ...sharesConfig(shares), ...providerConfig(this.#scenario) }
    const options = {
      seed,
      config: { ...config, destination: tables, ...ofParts } as WorldConfig,
      store: directory === null ? ('memory' as const) : { directory },
    }
    const world = await createObservedWorld(options, this.#recorder.between)
    this.#recorder.world = world
    for (const fault of faults) world.rule(fault)
    await world.advance(`${commitTakes}ms`)
    this.#hook = receiver === undefined ? null : await receive(world, receiver)
    return world
  }

  async #make(world: World, step: Step): Promise<void> {
    if (step.do === 'set the clock') world.stepClock(step.by / SECOND)
    else if (step.do === 'fill the disk') this.#fillDisk(world, step.time)
    else if (step.do === 'mail') this.#handIn(world, step.mail)
    else if (!world.isUp) return
    else if (step.do === 'look') await this.#look(world)
    else if (step.do === 'crash') await world.crash({ downFor: step.downFor / SECOND })
    else await this.#order(world, step)
  }

  /** Runs an operation. Fails, as for an operator, when the disk is full or the relay crashes meanwhile. */
  async #order(world: World, step: Order): Promise<void> {
    try {
      if (step.do === 'restart') await world.restart()
      else if ('destination' in step) await world[step.do](step.destination)
      else await world.operate(step.do, step.pick === 'all' ? 'all' : await pickFrom(world, step.pick))
      const { destination } = { destination: undefined, ...step }
      this.#recorder.note('was carried out', { order: step.do, destination })
    } catch (error) {
      if (!(error instanceof Error) || !/disk is full|killed before the call ended/.test(error.message)) throw error
      this.#recorder.note('was refused', { order: step.do, why: error.message })
    }
  }

  #fillDisk(world: World, time: Duration): void {
    this.#recorder.fullUntil = world.clock.monotonic() + time
    this.#recorder.note('disk full', { until: this.#recorder.fullUntil })
  }

  #handIn(world: World, mail: Mail): void {
    const { number, sender, to } = mail
    const messageId = `<${number}@sim.example>`
    const digest = digestOf(contentOf(mail))
    this.#recorder.note('handed in', { mail: number, messageId, digest, sender, to: to.map(({ address }) => address) })
    void submit(world, mail).then((reply) => this.#recorder.note('answered', { mail: number, messageId, reply }))
  }

  async #look(world: World): Promise<void> {
    const messages = [...(await listed(world)), ...(await listed(world, 'trash'))]
    this.#recorder.note('looked', { messages, destinations: world.destinations() })
  }

  /** Each refused event holds the others up for some minutes. */
  async #noteReceived(world: World, hook: Webhook): Promise<void> {
    const events = await world.events()
    await world.advance(`${HOUR + events.length * MINUTE}ms`)
    const parked = await world.reader.parkedEvents('app', { after: 0, limit: 1_000 })
    this.#recorder.note('received', { events, requests: receivedBy(hook), parked: parked.map(({ event }) => event.seq) })
  }

  /** Removes all causes of delay. Then all mail must be delivered or returned in a bounded time. */
  async #end(world: World): Promise<void> {
    const scenario = this.#scenario
    this.#recorder.calm = true
    await world.advance('2h')
    if (scenario.ends === 'well') {
      world.remote.removeRules(() => true)
      this.#recorder.note('faults end')
    }
    for (const destination of scenario.destinations) await world.resume(destination)
    for (const queue of ['hold', 'corrupt'] as const) {
      await world.operate(
        'release',
        (await listed(world, queue)).map(({ message }) => queueIdOf(message)),
      )
    }
    await this.#look(world)
    await world.advance(`${drainTime(scenario)}ms`)
    await this.#look(world)
    this.#recorder.note('mailboxes', { mails: arrivedIn(world, scenario) })
    if (this.#hook !== null) await this.#noteReceived(world, this.#hook)
    this.#recorder.note('told', { events: await world.events(), stories: await storiesIn(world.reader) })
  }
}

const listed = (world: World, queue: QueueFilter['queue'] = null) =>
  world.reader.list({ ...ANY_MESSAGE, queue }, { after: 0, limit: 1_000 })

/** All messages, those in the queue and those that have left. */
export async function storiesIn(reader: QueueReader): Promise<readonly Story[]> {
  const page = { after: 0, limit: 1_000 }
  const queued = (await Promise.all([null, 'trash' as const].map((queue) => reader.list({ ...ANY_MESSAGE, queue }, page)))).flat()
  const kept = await Promise.all(queued.map(({ message }) => reader.details(queueIdOf(message))))
  const left: MessageDetails[] = []
  for (let before: number | null | undefined; before !== null;) {
    const found = await reader.departed(
      { sender: null, recipient: null, outcome: null, class: null, status: null, since: null, until: null },
      { before: before ?? null, limit: 1_000 },
    )
    left.push(...found.messages)
    before = found.next
  }
  return [...kept.flatMap((one) => one ?? []), ...left].map(({ message, queue, recipients, history }) => ({
    queueId: queueIdOf(message),
    hasLeft: queue === 'gone',
    recipients: recipients.map(({ id, address, state }) => ({ id, address, state })),
    history: history.map(({ recipient, outcome }) => ({ recipient, outcome })),
  }))
}

async function advanceTo(world: World, at: Duration): Promise<void> {
  const left = at - world.clock.monotonic()
  if (left > 0) await world.advance(`${left}ms`)
}

async function pickFrom(world: World, pick: number): Promise<readonly string[]> {
  const messages = [...(await listed(world)), ...(await listed(world, 'trash'))]
  const picked = messages[pick % Math.max(1, messages.length)]
  return picked === undefined ? [] : [queueIdOf(picked.message)]
}

/** Maximum time until all mail has left the queue, or it and the notices about it have expired. */
export function drainTime({ config, tables, ends }: Scenario): Duration {
  const longest = (name: string) =>
    Math.max(...[config, ...Object.values(tables)].map((table) => parseDuration(String(table[name] ?? 0)) ?? 0))
  const spread = 1 + Number(config['retry_jitter'] ?? 0)
  const time = ends === 'well' ? 3 * spread * longest('maximal_backoff_time') : 3 * longest('maximal_queue_lifetime')
  return Math.ceil(time + HOUR + 10 * MINUTE)
}

export function arrivedIn(world: Pick<World, 'mailbox'>, { destinations }: Scenario): readonly Arrived[] {
  const people = ['ann', 'bob', 'eve', 'joe', 'sender', 'moved']
  const addresses = destinations.flatMap((domain) => people.map((person) => `${person}@${domain}`))
  return [...addresses, `app@${OWN_DOMAIN}`, 'postmaster@deferd.example'].flatMap((address) =>
    world
      .mailbox(address)
      .mails()
      .map((mail): Arrived => ({
        address,
        messageId: mail.header('message-id') ?? '',
        digest: digestOf(mail.content.replace(/^Received:.*\r\n(?:[ \t].*\r\n)*/, '')),
      })),
  )
}

export const digestOf = (content: string): string => createHash('sha256').update(content).digest('hex').slice(0, 16)
