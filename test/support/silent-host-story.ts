/** A relay with many domains whose mail one host takes, which does not answer for a time, beside domains whose hosts do. */
import type { AttemptResult } from '../../src/delivery/delivery-agent.ts'
import { SECOND } from '../../src/system/clock.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { createObservedWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import type { WorldOptions } from '../../src/testkit/options/world-options.ts'
import { closeAtEnd, closedByTest } from './open-worlds.ts'

/** Address of the host. */
export const SILENT = '185.30.0.31'

/** A call of the delivery agent. Times in seconds since the start. */
export interface AgentCall {
  readonly destination: string
  readonly begunAt: number
  readonly endedAt: number
  readonly outcome: 'delivered' | 'deferred' | 'bounced' | 'passed-over' | 'not-begun'
}

export interface SilentHostOptions extends Pick<WorldOptions, 'config' | 'store'> {
  readonly domains: number
  /** Fault of the host, as members of a rule (docs/faults.md). */
  readonly fault?: string
  /** Rules for other hosts, as TOML. */
  readonly rules?: string
}

const outcomeOf = ({ outcomes }: AttemptResult) => [...outcomes.values()][0]?.outcome ?? 'deferred'

/** A domain with two hosts, of which the best is the silent one. */
const SECOND_HOST = '[dns."two.example"]\nmx = ["10 mx.silent.example", "20 mx2.two.example"]\n'

function scriptOf(domains: readonly string[], fault: string, rules: string): string {
  const dns = domains.map((domain) => `[dns."${domain}"]\nmx = ["10 mx.silent.example"]\n`).join('')
  return `[rule.silent]\nmx = "mx.silent.example"\n${fault}\n${dns}${SECOND_HOST}[dns."mx.silent.example"]\na = ["${SILENT}"]\n${rules}`
}

export class SilentHostStory {
  readonly calls: AgentCall[] = []
  readonly domains: readonly string[]
  #open: World | undefined

  private constructor(domains: readonly string[]) {
    this.domains = domains
    closeAtEnd(this)
  }

  static async open({
    domains: count,
    fault = 'connect = "timeout"',
    rules = '',
    ...options
  }: SilentHostOptions): Promise<SilentHostStory> {
    const story = new SilentHostStory(Array.from({ length: count }, (_, n) => `dead${n}.example`))
    story.#open = await createObservedWorld(
      { ...options, script: scriptOf(story.domains, fault, rules) },
      {
        agent: (agent, { clock }) => ({
          deliver: async (request, how) => {
            const time = () => (clock.now() - BEGINNING) / SECOND
            const begunAt = time()
            const result = await agent.deliver(request, how)
            const outcome = typeof result === 'string' ? result : outcomeOf(result)
            story.calls.push({ destination: request.destination, begunAt, endedAt: time(), outcome })
            return result
          },
          close: () => agent.close(),
        }),
      },
    )
    return story
  }

  get world(): World {
    if (this.#open === undefined) throw new Error('the world is not open')
    return this.#open
  }

  async close(): Promise<void> {
    closedByTest(this)
    await this.#open?.close()
  }

  /** Queues a message for an address as smtpd does. */
  async accept(to: string): Promise<void> {
    const { intake } = this.world.relay
    const { id, arrivedAt } = intake.begin()
    const content = Buffer.from('Subject: hi\r\n\r\nhi\r\n')
    const message = { id, createdAt: arrivedAt, arrivedAt, sender: 'app@us.example', size: content.length, contentId: id, smtputf8: false }
    await intake.take({ message, recipients: [{ address: to }], content: [content], client: null })
  }

  /** Queues messages for each domain of the host. */
  async acceptEach(messages: number): Promise<void> {
    for (let n = 0; n < messages; n++) for (const domain of this.domains) await this.accept(`user${n}@${domain}`)
  }

  /** Attempts with the domains of the host. */
  get attempts(): readonly AgentCall[] {
    return this.calls.filter(
      ({ destination, outcome }) => destination.startsWith('dead') && outcome !== 'passed-over' && outcome !== 'not-begun',
    )
  }

  /** Attempts that have not ended when they began, at their maximum. */
  get mostAtOnce(): number {
    return Math.max(
      0,
      ...this.attempts.map(({ begunAt: at }) => this.attempts.filter((one) => one.begunAt <= at && at < one.endedAt).length),
    )
  }

  /** Number of destinations in a state. */
  count(state: 'open' | 'throttled' | 'dead'): number {
    return this.world.relay.scheduler.destinations.all().filter((one) => one.state === state).length
  }
}
