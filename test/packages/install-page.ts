/** The commands of docs/install.md, typed one after the other as a newcomer does. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { VERSION } from '../../src/system/version.ts'
import { StartedProcess } from '../support/started-daemon.ts'
import { InstalledDeferd } from './installed-deferd.ts'
import { root } from './tools.ts'

/** The host of the page that takes the mail. */
const HOST = '[smtp.example.com]:25'

const page = readFileSync(join(root, 'docs/install.md'), 'utf8')

/** The commands under a heading, for this version and the host that takes the mail. Throws an assertion when there are more than four. */
export function installCommands(heading: string, host: string): readonly string[] {
  const [, block = ''] = page.match(`\\n## ${heading}\\n[^]*?\\n\`\`\`sh\\n([^]*?)\\n\`\`\``) ?? []
  const commands = block.split('\n')
  expect(commands.length).toBeGreaterThan(1)
  expect(commands.length).toBeLessThanOrEqual(4)
  expect(block).toContain(HOST)
  // The executables have no version in their names.
  for (const [version] of block.matchAll(/(?<=deferd[-_])\d+\.\d+\.\d+/g)) expect(version).toBe(VERSION)
  return commands.map((command) => command.replaceAll(HOST, host))
}

/** Line of the daemon after which it takes mail. */
const READY = 'queue directory:'

/** A shell in a folder, in which commands are typed. */
export class NewcomerShell {
  readonly #cwd: string
  readonly #env: NodeJS.ProcessEnv
  readonly #running: StartedProcess[] = []

  constructor(cwd: string, env: NodeJS.ProcessEnv) {
    this.#cwd = cwd
    this.#env = env
  }

  /** Types a command. One that ends with `&` is awaited until it takes mail, any other one until it ends, which must be with exit code 0. */
  async type(command: string): Promise<string> {
    const started = new StartedProcess(['setsid', '--wait', 'sh', '-c', command.replace(/ &$/, '')], { cwd: this.#cwd, env: this.#env })
    if (command.endsWith(' &')) {
      this.#running.push(started)
      await started.prints(READY)
      return started.out
    }
    const { code, out, err } = await started.ended
    if (code !== 0) throw new Error(`${command}: exit code ${code}\n${out}${err}`)
    return out + err
  }

  /** Ends what runs, with its children: they have a session of their own. */
  async close(): Promise<void> {
    for (const { child } of this.#running) if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
    await Promise.all(this.#running.map(({ ended }) => ended))
  }
}

/** A host that takes mail, and tells when it has. */
export class Receiver {
  readonly #sink: InstalledDeferd = new InstalledDeferd(process.execPath, join(root, 'bin/deferd.js'))
  readonly #started = this.#sink.start(['sink', '--listen', '127.0.0.1:0'])

  /** The host in the form of relayhost. */
  async host(): Promise<string> {
    await this.#started.prints('listens on')
    return `[127.0.0.1]:${/listens on 127\.0\.0\.1:(\d+)/.exec(this.#started.err)?.[1] ?? ''}`
  }

  /** Resolves when it has the mail of the page. */
  hasMail(): Promise<void> {
    return this.#started.prints('you@example.net')
  }

  close(): Promise<void> {
    return this.#sink.close()
  }
}
