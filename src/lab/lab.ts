/** The worlds of a lab: creation, names, limits and expiry. */
import type { RelayConfig } from '../config/relay-config.ts'
import { ConfigError, type Problem as ConfigProblem } from '../config/values/problem.ts'
import { Problem } from '../http/problem-details.ts'
import { plural } from '../presentation/text.ts'
import { formatDuration } from '../system/duration.ts'
import { HOUR, MINUTE, type Duration, type MachineClock, type WallTime } from '../system/clock.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'
import { readScriptOrDialogue } from '../testkit/record/recorded-dialogue.ts'
import { createWorld } from '../testkit/create-world.ts'
import type { World } from '../testkit/world.ts'
import { loadSimulated } from '../testkit/options/world-limits.ts'
import { invalidMembers, LAB_PROBLEMS, refuseWorld } from './lab-problems.ts'
import type { NamedStore } from '../testkit/options/world-options.ts'
import { LAB_DEFAULTS, LabWorld, type LabWorldFacts } from './lab-world.ts'
import type { WebhookTargets } from './webhook-targets.ts'
import { refusedExpansions, refusedNames, refusedValues } from './refused-parameters.ts'

export interface LabLimits {
  /** Number of worlds that are open at once. */
  readonly maxWorlds: number
  /** Real time without a request after which a world ends; 0 for never. */
  readonly idle: Duration
  /** Real time after which a world ends. */
  readonly lifetime: Duration
}

interface LabDeps {
  readonly clock: MachineClock
  readonly limits: LabLimits
  /** Address of the SMTP ports. */
  readonly address: string
  /** Permitted targets of webhooks. */
  readonly targets: WebhookTargets
  /** Called for each new world. */
  readonly opened?: (world: LabWorld) => void
}

interface NewWorld {
  readonly seed: number
  readonly config: RelayConfig
  readonly script?: string | undefined
  /** IANA name of the local zone of the relay. */
  readonly zone?: string | undefined
  readonly store: NamedStore
  readonly speed: number
  /** False for a world of remote ports alone. */
  readonly relay: boolean
  /** Hosts that listen on ports of their own, for relays in other processes. */
  readonly remotePorts: readonly string[]
  readonly name: string | null
  readonly tls: 'none' | 'starttls'
  readonly users?: Readonly<Record<string, string>> | undefined
  /** SMTP port; 0 for a free one. */
  readonly port: number
  /** True for a world that does not expire. */
  readonly isLasting: boolean
}

/** Interval at which expired worlds are closed. */
const EXPIRY_CHECK: Duration = 1_000
/** Time for which the end of a world is remembered. */
const REMEMBERED: Duration = HOUR
const IDS_LISTED = 10

interface Ended {
  readonly at: Duration
  readonly sentence: string
  /** Null while the world closes, and for one whose clock has followed real time. */
  hash: string | null
}

export class Lab {
  readonly #deps: LabDeps
  readonly #worlds = new Map<string, LabWorld>()
  readonly #lasting = new Set<LabWorld>()
  readonly #ended = new Map<string, Ended>()
  readonly startedAt: Duration
  /** Runs while a world is open. */
  #expiry: PeriodicTask | null = null
  #opening = 0
  #created = 0

  constructor(deps: LabDeps) {
    this.#deps = deps
    this.startedAt = deps.clock.monotonic()
  }

  get limits(): LabLimits {
    return this.#deps.limits
  }

  get worlds(): readonly LabWorld[] {
    return [...this.#worlds.values()]
  }

  /** Seconds since the start. */
  get uptime(): number {
    return (this.#deps.clock.monotonic() - this.startedAt) / 1_000
  }

  /** Creates a world as a request names it: its configuration may not open files. Rejects with Problem, which has all mistakes. */
  async createFromRequest(asked: Omit<NewWorld, 'port' | 'isLasting'>): Promise<LabWorld> {
    const { config, script } = asked
    const refused = [...refusedNames(config), ...refusedValues(config)]
    if (refused.length > 0) throw invalidMembers(refused)
    try {
      const problems: ConfigProblem[] = []
      const loaded = checked(() => loadSimulated(config, 'lab.example'), problems)
      checked(() => script !== undefined && readScriptOrDialogue(script, 'script'), problems)
      if (loaded === null || problems.length > 0) throw new ConfigError(problems)
      const expanded = refusedExpansions(loaded)
      if (expanded.length > 0) throw invalidMembers(expanded)
      return await this.create({ ...asked, port: 0, isLasting: false })
    } catch (error) {
      if (error instanceof Problem) throw error
      refuseWorld(error, config)
    }
  }

  /** Creates a world. Rejects with ConfigError, with Problem at a limit, and with the error of the system for its port. */
  async create(asked: NewWorld): Promise<LabWorld> {
    const { seed, config, script, zone, store, tls, users, speed, name, isLasting } = asked
    this.#assertRoom()
    if (name !== null && this.worlds.some(({ facts }) => facts.name === name || facts.id === name))
      throw new Problem(LAB_PROBLEMS.nameTaken, `there is a world ${name} already: delete it, or choose another name`)
    this.#opening++
    try {
      const defaults = Object.fromEntries(Object.entries(LAB_DEFAULTS).filter(([one]) => !(one in config)))
      const world = await createWorld({
        seed,
        config: { ...defaults, ...config },
        script,
        store,
        tls,
        users,
        ...(zone === undefined ? {} : { zone: zoneOf(zone) }),
      })
      const ports = await this.#openPorts(world, asked).catch(async (error: unknown) => {
        await world.close()
        throw error
      })
      const opened = new LabWorld(
        { id: `w${++this.#created}`, name, seed, store, tls, world, defaults, ...ports },
        this.#deps.clock,
        this.#deps.targets,
      )
      this.#worlds.set(opened.facts.id, opened)
      if (isLasting) this.#lasting.add(opened)
      opened.speed = speed
      this.#deps.opened?.(opened)
      this.#expiry ??= every(this.#deps.clock, EXPIRY_CHECK, () => this.#expire())
      return opened
    } finally {
      this.#opening--
    }
  }

  /** Opens the port of the relay, and those of remote hosts. */
  async #openPorts(world: World, { relay, port, remotePorts }: NewWorld): Promise<Pick<LabWorldFacts, 'smtp' | 'remotePorts'>> {
    const { address } = this.#deps
    const smtp = relay ? await world.openPort(port, address) : null
    const opened = []
    for (const mx of remotePorts) opened.push({ mx, at: await world.openRemotePort(mx, 0, address) })
    return { smtp, remotePorts: opened }
  }

  /** The world with this id or name, which is in use now. */
  find(text: string): LabWorld | undefined {
    const found = this.#worlds.get(text) ?? this.worlds.find(({ facts }) => facts.name === text)
    if (found !== undefined) found.usedAt = this.#deps.clock.monotonic()
    return found
  }

  /** The world with this id or name. Throws Problem without one. */
  named(text: string): LabWorld {
    const found = this.find(text)
    if (found !== undefined) return found
    const ended = this.#ended.get(text)
    if (ended !== undefined)
      throw new Problem(LAB_PROBLEMS.worldEnded, `${ended.sentence}${ended.hash === null ? '' : `; its last hash was ${ended.hash}`}`)
    throw new Problem(LAB_PROBLEMS.unknownWorld, `there is no world ${text}: ${this.#listed()}`)
  }

  #listed(): string {
    const shown = this.worlds.slice(0, IDS_LISTED).map(({ facts: { id, name } }) => (name === null ? id : `${id} (name "${name}")`))
    if (shown.length === 0) return 'no world is open'
    return `worlds are ${shown.join(', ')}${this.#worlds.size > IDS_LISTED ? ', …' : ''}`
  }

  /** Instant of the wall clock at which a world ends without a request; null for one that does not expire. */
  expiryOf(world: LabWorld): WallTime | null {
    if (this.#lasting.has(world)) return null
    return this.#deps.clock.now() + this.#endOf(world) - this.#deps.clock.monotonic()
  }

  #endOf({ usedAt, createdAt }: LabWorld): Duration {
    const { idle, lifetime } = this.limits
    return Math.min(idle === 0 ? Infinity : usedAt + idle, createdAt + lifetime)
  }

  async delete(world: LabWorld): Promise<void> {
    await this.#end(world, 'was deleted')
  }

  async #end(world: LabWorld, why: string): Promise<void> {
    const { id, name } = world.facts
    if (!this.#worlds.delete(id)) return
    this.#lasting.delete(world)
    const now = this.#deps.clock.monotonic()
    const ended: Ended = { at: now, sentence: `world ${id} ${why}`, hash: null }
    for (const key of [id, name]) if (key !== null) this.#ended.set(key, ended)
    for (const [key, { at }] of this.#ended) if (at < now - REMEMBERED) this.#ended.delete(key)
    ended.hash = await world.close()
    if (this.#worlds.size === 0) this.#stopExpiry()
  }

  #expire(): void {
    const now = this.#deps.clock.monotonic()
    const { idle, lifetime } = this.limits
    for (const world of this.worlds) {
      if (this.#lasting.has(world) || now < this.#endOf(world)) continue
      const isOld = now >= world.createdAt + lifetime
      void this.#end(
        world,
        isOld
          ? `expired after ${formatDuration(lifetime)} (--lifetime)`
          : `expired after ${formatDuration(idle)} without a request (--idle)`,
      )
    }
  }

  #assertRoom(): void {
    const { maxWorlds } = this.limits
    if (this.#worlds.size + this.#opening < maxWorlds) return
    const [oldest] = this.worlds.toSorted((a, b) => a.usedAt - b.usedAt)
    const idle = oldest === undefined ? 0 : this.#deps.clock.monotonic() - oldest.usedAt
    const hint =
      oldest === undefined ? '' : `; the oldest, ${plural(Math.floor(idle / MINUTE), 'minute')} without a request, is ${oldest.facts.id}`
    throw new Problem(LAB_PROBLEMS.tooManyWorlds, `${plural(maxWorlds, 'world')} are open (--max-worlds)${hint}`, {
      headers: { 'retry-after': '5' },
    })
  }

  #stopExpiry(): void {
    void this.#expiry?.stop()
    this.#expiry = null
  }

  /** Closes all worlds. */
  async close(): Promise<void> {
    this.#stopExpiry()
    await Promise.all(this.worlds.map((world) => this.#end(world, 'ended with the lab')))
  }
}

/** The result of `read`; null after a ConfigError, whose problems are added. */
function checked<T>(read: () => T, problems: ConfigProblem[]): T | null {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    problems.push(...error.problems)
    return null
  }
}

const PART = { timeZoneName: 'longOffset', hourCycle: 'h23', year: 'numeric' } as const

/** The local zone of an IANA name. Throws RangeError for an unknown name. */
function zoneOf(name: string): (at: WallTime) => { readonly offset: number; readonly name: string } {
  const offsets = new Intl.DateTimeFormat('en-US', { ...PART, timeZone: name })
  const names = new Intl.DateTimeFormat('en-US', { ...PART, timeZoneName: 'short', timeZone: name })
  const partOf = (format: Intl.DateTimeFormat, at: WallTime): string =>
    format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  return (at) => {
    const [, sign = '+', hours = '0', minutes = '0'] = /GMT([+-])(\d\d):(\d\d)/.exec(partOf(offsets, at)) ?? []
    const offset = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1)
    return { offset, name: partOf(names, at) }
  }
}
