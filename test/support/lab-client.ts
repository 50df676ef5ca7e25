/** A lab in the test process, over real HTTP on loopback. Every answer is compared with the OpenAPI document of the lab. */
import { connect, type Socket } from 'node:net'
import { createTransport } from 'nodemailer'
import { expect } from 'vitest'
import { Lab, type LabLimits } from '../../src/lab/lab.ts'
import { LAB_BASE } from '../../src/lab/lab-route.ts'
import { LabServer, labRoutes } from '../../src/lab/lab-server.ts'
import { WebhookTargets } from '../../src/lab/webhook-targets.ts'
import type { Net } from '../../src/system/net.ts'
import type { Timers } from '../../src/system/clock.ts'
import { systemNet } from '../../src/system/system-net.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { AnswerCheck } from './api-server.ts'

const LIMITS: LabLimits = { maxWorlds: 64, idle: 600_000, lifetime: 7_200_000 }

/** Members of answers that tests read. An answer has some of them. */
export interface LabMembers {
  readonly id: string
  readonly smtp: { readonly host: string; readonly port: number; readonly ca: string | null }
  readonly remote_ports: readonly { readonly mx: string; readonly port: number }[]
  readonly type: string
  readonly detail: string
  readonly errors: readonly { readonly pointer: string; readonly detail: string }[]
  readonly now: string
  readonly elapsed: number
  readonly passed: number
  readonly secret: string
  readonly requests: readonly {
    readonly at: number
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
    readonly status: number | null
  }[]
  readonly accepted: number
  readonly sessions: readonly { readonly stage: string; readonly in_transaction: boolean; readonly waits_until: string | null }[]
  readonly rules: readonly { readonly id: number; readonly name: string; readonly rule: object; readonly used: number }[]
  readonly attempted_at: readonly number[]
  readonly attempts: readonly { readonly outcome: string; readonly reply: string | null }[]
  readonly notices: readonly string[]
  readonly copies: readonly number[]
  readonly story: readonly string[]
  readonly holds: boolean
  readonly message: string | null
  readonly hash: string | null
  readonly outcomes_hash: string
  readonly order: string | null
  readonly mails: readonly { readonly id: number; readonly subject: string }[]
  readonly events: readonly { readonly id: string; readonly type: string }[]
  readonly code: string | null
  readonly codes: readonly string[]
  readonly subject: string
  readonly messages: readonly { readonly sender: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
}

export interface LabReply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: LabMembers
}

interface LabOptions extends Partial<LabLimits> {
  readonly token?: string | null
  /** Net of the webhooks. */
  readonly net?: Net
  readonly allowed?: readonly string[]
  /** Clock of the limits of webhooks. */
  readonly webhookClock?: Timers
}

export class TestLab implements AsyncDisposable {
  readonly lab: Lab
  readonly base: string
  readonly failures: string[]
  readonly #server: LabServer
  readonly #answers: AnswerCheck

  private constructor(lab: Lab, server: LabServer, { base, failures }: { readonly base: string; readonly failures: string[] }) {
    this.lab = lab
    this.#server = server
    this.base = base
    this.failures = failures
    this.#answers = new AnswerCheck(labRoutes(lab), LAB_BASE)
  }

  static async open({
    token = null,
    net = systemNet,
    webhookClock = systemClock,
    allowed = [],
    ...limits
  }: LabOptions = {}): Promise<TestLab> {
    const failures: string[] = []
    const targets = new WebhookTargets({ net, clock: webhookClock, allowed: new Set(allowed) })
    const lab = new Lab({ clock: systemClock, limits: { ...LIMITS, ...limits }, address: '127.0.0.1', targets })
    const server = new LabServer({ lab, clock: systemClock, token, failed: (text) => failures.push(text) })
    const { port } = await server.listen({ address: '127.0.0.1', port: 0 })
    return new TestLab(lab, server, { base: `http://127.0.0.1:${port}${LAB_BASE}`, failures })
  }

  async ask(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<LabReply> {
    const response = await fetch(`${this.base}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = /^application\/(problem\+)?json/.test(response.headers.get('content-type') ?? '')
    const reply = { status: response.status, headers: response.headers, text, json: (isJson ? JSON.parse(text) : undefined) as LabMembers }
    this.#answers.check(method, path, reply)
    return reply
  }

  /** Creates a world, and fails the test when it is refused. */
  async world(options: object = {}): Promise<LabClient> {
    const { status, json, text } = await this.ask('POST', '/worlds', options)
    expect(status, text).toBe(201)
    return new LabClient(this, json)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.close()
    await this.lab.close()
    expect(this.failures).toEqual([])
  }
}

/** A world of a TestLab. */
export class LabClient {
  readonly id: string
  readonly port: number
  readonly remotePorts: LabMembers['remote_ports']
  readonly #lab: TestLab

  constructor(lab: TestLab, { id, smtp, remote_ports: remotePorts }: LabMembers) {
    this.#lab = lab
    this.id = id
    // Null for a world without a relay.
    this.port = (smtp as LabMembers['smtp'] | null)?.port ?? 0
    this.remotePorts = remotePorts
  }

  ask(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<LabReply> {
    return this.#lab.ask(method, `/worlds/${this.id}${path}`, body, headers)
  }

  /** The answer to a request, which must succeed. */
  async get(path: string): Promise<LabMembers> {
    const { status, json, text } = await this.ask('GET', path)
    expect(status, text).toBe(200)
    return json
  }

  async post(path: string, body: object = {}): Promise<LabMembers> {
    const { status, json, text } = await this.ask('POST', path, body)
    expect([200, 201], text).toContain(status)
    return json
  }

  /** Sends a message over SMTP. Resolves with the reply of the relay. */
  async send(
    to: string | readonly string[],
    { subject = 'hi', text = 'hello', raw }: { readonly subject?: string; readonly text?: string; readonly raw?: string } = {},
  ): Promise<string> {
    const transport = createTransport({ host: '127.0.0.1', port: this.port, ignoreTLS: true })
    const envelope = { from: 'app@us.example', to: typeof to === 'string' ? [to] : [...to] }
    try {
      const { response } = await transport.sendMail(raw === undefined ? { ...envelope, subject, text } : { envelope, raw })
      return response
    } finally {
      transport.close()
    }
  }

  /** Opens an SMTP session. */
  async session(): Promise<RawSession> {
    const session = new RawSession(connect(this.port, '127.0.0.1'))
    expect(await session.reply()).toMatch(/^220 /)
    return session
  }
}

/** An SMTP session, line by line. */
export class RawSession {
  readonly socket: Socket
  readonly ended: Promise<string>
  #text = ''
  #wake: () => void = () => undefined

  constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => {
      this.#text += text
      this.#wake()
    })
    this.ended = new Promise((resolve) => {
      socket.on('error', (error) => resolve('code' in error ? String(error.code) : error.message))
      socket.on('end', () => resolve('end'))
    })
    void this.ended.then(() => this.#wake())
  }

  /** The next reply of one line or several; what has come when the connection ends. */
  async reply(): Promise<string> {
    for (;;) {
      const end = /^\d{3} [^\n]*\n/m.exec(this.#text)
      if (end !== null) {
        const reply = this.#text.slice(0, end.index + end[0].length)
        this.#text = this.#text.slice(reply.length)
        return reply.trimEnd()
      }
      if (this.socket.destroyed || this.socket.readableEnded) return this.#text
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  async command(line: string): Promise<string> {
    this.socket.write(`${line}\r\n`)
    return this.reply()
  }
}
