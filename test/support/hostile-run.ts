/** Sends hostile requests to a daemon that has mail, while more mail arrives, and measures the greetings of its SMTP port. */
import { request as httpRequest } from 'node:http'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { HOSTILE_EVENTS, hostileRequests, type HostileRequest, type HostileRole } from './hostile-requests.ts'
import { Operator } from './operator.ts'
import { DEAD_HOST } from './page-daemon.ts'
import { portBelowEphemeral } from './ports.ts'
import { DaemonFolder, type StartedProcess } from './started-daemon.ts'

/** The time of an exchange. */
export interface Waited {
  /** Time in ms; infinite without an answer within LIMIT. */
  readonly took: number
  /** The part of it for which both ends had a processor, or had no need of one: the other work of the machine is not the relay's. */
  readonly delay: number
}

export interface HostileAnswer extends Waited {
  readonly name: string
  /** Status; null without a whole answer within LIMIT. */
  readonly status: number | null
}

export interface HostileRun {
  readonly answers: readonly HostileAnswer[]
  /** Greetings of new connections. */
  readonly greetings: readonly Waited[]
  /** Messages that were accepted meanwhile. */
  readonly accepted: number
}

/** Time in ms within which each request is answered by a relay that has a processor. */
export const ANSWERED_WITHIN = 10_000
/** Time in ms for which a client waits. */
const LIMIT = 60_000
/** Requests that run at once. */
const AT_ONCE = 4
/** Pause between two greetings. */
const PAUSE = 20

const ROLES: Readonly<Record<HostileRole, readonly string[]>> = {
  viewer: ['--role', 'viewer'],
  operator: ['--role', 'operator'],
  sender: ['--role', 'sender'],
  limited: ['--role', 'operator', '--destination', '*.example'],
}

/** A request with its body: making one would delay the greetings that are measured. */
interface MadeRequest extends Omit<HostileRequest, 'body'> {
  readonly bytes: Buffer | null
}

const made = ({ body, ...request }: HostileRequest): MadeRequest => ({ ...request, bytes: body === undefined ? null : Buffer.from(body()) })

/** Time in ms for which the main thread of a process was ready to run, and waited for a processor (proc(5), schedstat). */
const runDelay = (pid: string): number => Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6

const pause = (time: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, time))

/** Tells whether a promise is settled. */
function settledOf(promise: Promise<unknown>): () => boolean {
  let isSettled = false
  const settle = (): void => {
    isSettled = true
  }
  promise.then(settle, settle)
  return () => isSettled
}

/** Addresses that are long, so that patterns have much to compare. */
const longAddress = (n: number): string => `${'a'.repeat(50)}${n % 7}@${'aa.'.repeat(40)}${n % 5}.example`

class Subject {
  readonly #folder = new DaemonFolder()
  readonly #operator = new Operator()
  readonly #tokens = new Map<HostileRole, string>()
  #process: StartedProcess | undefined
  #smtp = 0
  #admin = 0

  async start(settings: Readonly<Record<string, string>>): Promise<void> {
    ;[this.#smtp, this.#admin] = [await portBelowEphemeral(), await portBelowEphemeral()]
    const file = join(this.#folder.path, 'deferd.toml')
    const tables = Object.entries(HOSTILE_EVENTS).map(([name, table]) => {
      const members = Object.entries(table).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`)
      return `[events.${name}]\n${members.join('')}`
    })
    writeFileSync(file, `[events.file]\nto = "file:${join(this.#folder.path, 'events')}"\n${tables.join('')}`)
    const ports = { smtpd_listen: `127.0.0.1:${this.#smtp}`, admin_listen: `127.0.0.1:${this.#admin}`, relayhost: DEAD_HOST }
    this.#process = this.#folder.run(['start', '--config', file], { ...ports, ...settings })
    await this.#process.prints('queue directory')
    for (const [role, options] of Object.entries(ROLES)) {
      const { out, err } = await this.#operator.run([
        'token',
        'add',
        role,
        ...options,
        '-o',
        `queue_directory=${join(this.#folder.path, 'queue')}`,
        ...Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
      ])
      const [token] = /dfd_\w+/.exec(out) ?? []
      if (token === undefined) throw new Error(`no token for ${role}: ${out}${err}`)
      this.#tokens.set(role as HostileRole, token)
    }
  }

  async close(): Promise<void> {
    this.#operator.leave()
    await this.#folder.close()
  }

  /** Sends messages until `until` resolves, and `least` at least. Resolves with their number. */
  async sendMail(least: number, until: Promise<unknown>): Promise<number> {
    const client = createTransport({
      host: '127.0.0.1',
      port: this.#smtp,
      pool: true,
      maxConnections: 1,
      maxMessages: 1_000_000,
      ignoreTLS: true,
    })
    let sent = 0
    const isOver = settledOf(until)
    while (sent < least || !isOver()) {
      const to = Array.from({ length: 20 }, (_, n) => longAddress(sent + n))
      await client.sendMail({ envelope: { from: longAddress(sent), to }, raw: 'Subject: hi\r\n\r\nx\r\n' })
      sent++
    }
    client.close()
    return sent
  }

  /** Waits for the greeting of a new connection. */
  greeting(): Promise<Waited> {
    const watch = this.#watch()
    return new Promise((resolve) => {
      const socket = connect(this.#smtp, '127.0.0.1')
      const end = (isGreeted: boolean): void => {
        socket.destroy()
        resolve(watch(isGreeted))
      }
      socket.setTimeout(LIMIT, () => end(false))
      socket.on('error', () => end(false)).on('data', () => end(true))
    })
  }

  /** Begins to measure an exchange. */
  #watch(): (isAnswered: boolean) => Waited {
    const pids = ['self', String(this.#process?.child.pid)]
    const queued = (): number => pids.reduce((sum, pid) => sum + runDelay(pid), 0)
    const [begun, before] = [performance.now(), queued()]
    return (isAnswered) => {
      const took = isAnswered ? performance.now() - begun : Infinity
      return { took, delay: Math.max(0, took - (queued() - before)) }
    }
  }

  /** Sends a request, and reads its whole answer; of a stream of events, the header. */
  ask({ name, as, method, target, accept, type, bytes }: MadeRequest): Promise<HostileAnswer> {
    const watch = this.#watch()
    return new Promise((resolve) => {
      const end = (status: number | null): void => {
        clearTimeout(timer)
        asked.destroy()
        resolve({ name, status, ...watch(status !== null) })
      }
      const headers = {
        authorization: `Bearer ${this.#tokens.get(as) ?? ''}`,
        ...(accept === undefined ? {} : { accept }),
        ...(type === undefined ? {} : { 'content-type': type }),
        ...(bytes === null ? {} : { 'content-length': bytes.length }),
      }
      const asked = httpRequest({ host: '127.0.0.1', port: this.#admin, path: `/${target}`, method, headers, agent: false })
      const timer = setTimeout(() => end(null), LIMIT)
      asked.on('error', () => end(null))
      asked.on('response', (answer) => {
        const isStream = answer.headers['content-type'] === 'text/event-stream'
        answer.resume().on('end', () => end(answer.statusCode ?? null))
        if (isStream) end(answer.statusCode ?? null)
      })
      asked.end(bytes)
    })
  }
}

async function inTurns<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<readonly R[]> {
  const left = [...all]
  const results: R[] = []
  const worker = async (): Promise<void> => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) results.push(await work(one))
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return results
}

export interface HostileOptions {
  readonly settings?: Readonly<Record<string, string>>
  /** Messages in the queue before the first request. */
  readonly messages: number
  /** Factor of the sizes of bodies. */
  readonly size: number
}

/** Sends all hostile requests to a new daemon. */
export async function hostileRun({ settings = {}, messages, size }: HostileOptions): Promise<HostileRun> {
  const all = hostileRequests(size).map(made)
  const subject = new Subject()
  try {
    await subject.start(settings)
    await subject.sendMail(messages, Promise.resolve())
    const requests = inTurns(all, (one) => subject.ask(one))
    const isOver = settledOf(requests)
    const greetings: Waited[] = []
    const greeted = async (): Promise<void> => {
      while (!isOver()) {
        greetings.push(await subject.greeting())
        await pause(PAUSE)
      }
    }
    const [answers, accepted] = await Promise.all([requests, subject.sendMail(1, requests), greeted()])
    return { answers, greetings, accepted }
  } finally {
    await subject.close()
  }
}

/** The answers that are no refusal, no page and no list: those of a relay that suffers. */
export const unfit = ({ answers }: HostileRun): readonly HostileAnswer[] =>
  answers.filter(({ status }) => status === null || !(status < 500 || status === 503 || status === 507))

/** The time that 99 of 100 greetings do not exceed, in ms. */
export function p99(run: HostileRun, time: keyof Waited): number {
  const sorted = run.greetings.map((one) => one[time]).toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Infinity
}

export const slowest = ({ greetings }: HostileRun, time: keyof Waited): number => Math.max(...greetings.map((one) => one[time]))

/** The figures of a run. */
export function figures(run: HostileRun): string {
  const longest = run.answers.toSorted((a, b) => b.took - a.took).slice(0, 8)
  const counts = Map.groupBy(run.answers, ({ status }) => status)
  const times = (time: keyof Waited) => `p99 ${Math.round(p99(run, time))} ms, longest ${Math.round(slowest(run, time))} ms`
  return [
    `${run.answers.length} requests: ${[...counts].map(([status, all]) => `${status} ${all.length}`).join(', ')}`,
    `${run.greetings.length} greetings: ${times('took')}; without waits for a processor ${times('delay')}`,
    `${run.accepted} messages accepted`,
    `longest: ${longest.map(({ name, took, status }) => `${name} ${status} ${Math.round(took)} ms`).join('; ')}`,
  ].join('\n')
}
