/** deferd as it is installed, used as someone does who has nothing else of it. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createTransport } from 'nodemailer'
import { expect } from 'vitest'
import { portBelowEphemeral } from '../support/ports.ts'
import { StartedProcess, type Ended } from '../support/started-daemon.ts'

type Environment = Readonly<Record<string, string>>

/** A program that runs with an empty environment, unless variables are named. */
export class InstalledDeferd {
  readonly folder = mkdtempSync(join(tmpdir(), 'deferd-installed-'))
  readonly #command: readonly string[]
  readonly #running: StartedProcess[] = []

  /** `command` is a program with its first arguments. */
  constructor(...command: readonly string[]) {
    this.#command = command
  }

  start(args: readonly string[], env: Environment = {}): StartedProcess {
    const started = new StartedProcess([...this.#command, ...args], { cwd: this.folder, env })
    this.#running.push(started)
    return started
  }

  run(args: readonly string[], env: Environment = {}): Promise<Ended> {
    return this.start(args, env).ended
  }

  /** Standard output of a command, which must end with code 0. */
  async output(...args: readonly string[]): Promise<string> {
    const ended = await this.run(args)
    expect({ ...ended, out: '' }).toEqual({ code: 0, out: '', err: '' })
    return ended.out
  }

  /** Ends a process as systemd does. */
  async stop({ child, ended }: StartedProcess): Promise<Ended> {
    child.kill('SIGTERM')
    return ended
  }

  async close(): Promise<void> {
    for (const { child } of this.#running) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await Promise.all(this.#running.map(({ ended }) => ended))
    rmSync(this.folder, { recursive: true, force: true })
  }
}

const send = async (port: number, to: readonly string[]): Promise<void> => {
  const transport = createTransport({ host: '127.0.0.1', port, ignoreTLS: true })
  for (const one of to) await transport.sendMail({ from: 'app@us.example', to: one, subject: 'hello', text: 'From one file.' })
  transport.close()
}

interface Lab {
  readonly http: string
}

/** A lab makes a world, and an hour passes in it until greylisted mail arrives. */
export async function labWorks(deferd: InstalledDeferd, env: Environment = {}): Promise<void> {
  const lab = deferd.start(['lab', '--http', '0'], env)
  await lab.prints('\n')
  const { http } = JSON.parse(lab.out.split('\n')[0] ?? '') as Lab
  const post = async (path: string, body: object): Promise<unknown> => {
    const answer = await fetch(`${http}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    expect(answer.ok).toBe(true)
    return answer.json()
  }
  const { id, smtp } = (await post('/lab/v1/worlds', {})) as { readonly id: string; readonly smtp: { readonly port: number } }
  await send(smtp.port, ['greylist+10m@partner.example'])
  await post(`/lab/v1/worlds/${id}/clock/settle`, { after: { accepted: 1 } })
  const waited = await fetch(`${http}/lab/v1/worlds/${id}/mailboxes/greylist+10m@partner.example/wait?within=0s`)
  expect(await waited.json()).toMatchObject({ subject: 'hello' })
  expect((await deferd.stop(lab)).code).toBe(0)
}

const portIn = (text: string, before: string): number => Number(new RegExp(`${before}(?:http://)?127\\.0\\.0\\.1:(\\d+)`).exec(text)?.[1])

/** A relay accepts two messages, delivers one, keeps the other one that is deferred, and shows both. */
export async function relayWorks(deferd: InstalledDeferd): Promise<void> {
  const sink = deferd.start(['sink', '--listen', '127.0.0.1:0'])
  await sink.prints('listens on')
  const queue = ['-o', `queue_directory=${join(deferd.folder, 'queue')}`]
  const ports = { smtpd_listen: '127.0.0.1:0', http_listen: '127.0.0.1:0', admin_listen: `127.0.0.1:${await portBelowEphemeral()}` }
  const settings = { ...ports, relayhost: `[127.0.0.1]:${portIn(sink.err, 'listens on ')}` }
  const relay = deferd.start(['start', ...queue, ...Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])])
  await relay.prints('metrics: ')
  await send(portIn(relay.out, 'deferd listens on '), ['ann@any.example', '451@any.example'])
  await relay.prints('status=sent')
  await relay.prints('status=deferred')
  const listed = await deferd.output('queue', 'list', ...queue)
  expect(listed).toContain('451@any.example')
  expect(listed).not.toContain('ann@any.example')
  const metrics = await fetch(`http://127.0.0.1:${portIn(relay.out, 'metrics: ')}/metrics`)
  expect(await metrics.text()).toContain('deferd_queue_messages{queue="deferred"} 1\n')
  await pageWorks(`http://127.0.0.1:${portIn(relay.out, 'page: ')}`)
  const copy = join(deferd.folder, 'copy.db')
  expect(await deferd.output('backup', copy, ...queue)).toContain(basename(copy))
  expect(existsSync(copy)).toBe(true)
  expect((await deferd.stop(relay)).code).toBe(0)
  await deferd.stop(sink)
}

/** The login form of the page, and the files that it names. */
async function pageWorks(page: string): Promise<void> {
  const form = await fetch(`${page}/`, { headers: { accept: 'text/html' } })
  const files = [...(await form.text()).matchAll(/(?:href|src)="([^"]*\.(?:css|js|svg))"/g)].map(([, path = '']) => new URL(path, form.url))
  expect(files.map(({ pathname }) => basename(pathname))).toEqual(expect.arrayContaining(['page.css']))
  for (const file of files) expect((await fetch(file)).status, file.href).toBe(200)
}
