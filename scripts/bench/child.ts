/**
 * Child processes of the bench: each in a process group of its own, its output in a file, stopped by its id.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Command {
  readonly program: string
  readonly args: readonly string[]
  readonly cwd: string
  /** Variables that are added to the environment. */
  readonly env?: Readonly<Record<string, string>>
}

export interface Child {
  readonly name: string
  readonly pid: number
  /** Resolves with `exit code 1` or `SIGTERM` when the process is gone. */
  readonly ended: Promise<string>
  hasEnded(): boolean
  /** The last lines of its output. */
  lastWords(): string
  /** Asks the process to end, and kills its group after ten seconds. */
  stop(): Promise<void>
}

const PATIENCE = 10_000

/** The environment without settings of deferd, which would change what is measured. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('DEFERD_')))
}

/** Starts a program whose standard output and error go to a file. */
export async function startChild(name: string, { program, args, cwd, env = {} }: Command, log: string): Promise<Child> {
  const file = openSync(log, 'a')
  const child = spawn(program, args, { cwd, env: { ...environment(), ...env }, stdio: ['ignore', file, file], detached: true })
  closeSync(file)
  const ended = new Promise<string>((resolve) => child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`)))
  const pid = await pidOf(name, child)
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  const stop = async () => {
    if (hasEnded()) return
    child.kill('SIGTERM')
    if ((await within(PATIENCE, ended)) === null) killGroup(pid)
    await ended
  }
  return { name, pid, ended, hasEnded, stop, lastWords: () => lastLines(log) }
}

function pidOf(name: string, child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', (cause) => reject(new Error(`${name} cannot be started: ${cause.message}`, { cause })))
    child.once('spawn', () => resolve(child.pid ?? 0))
  })
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** The value of the promise, or null after so many ms. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
  const alarm = new AbortController()
  const late = pause(ms, null, { signal: alarm.signal }).catch(() => null)
  try {
    return await Promise.race([promise, late])
  } finally {
    alarm.abort()
  }
}

export function lastLines(file: string): string {
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-5).join('\n')
}

/** Runs a program to its end and returns its standard output. Throws with the beginning of its standard error, without warnings. */
export async function output(program: string, args: readonly string[], cwd: string, signal?: AbortSignal): Promise<string> {
  try {
    const { stdout } = await run(program, args, { cwd, maxBuffer: 16_000_000, ...(signal && { signal }) })
    return stdout.trim()
  } catch (error) {
    if (signal?.aborted === true) throw error
    const { stderr = '', message } = error as Error & { stderr?: string }
    const said = stderr.split('\n').filter((line) => !/\bwarn|^\s*$|^npm error$/.test(line))
    const reason = said.slice(0, 3).join('; ')
    throw new Error(`${program} ${args.join(' ')} failed: ${reason || message}`, { cause: error })
  }
}

/** A free port of 127.0.0.1. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

/**
 * Waits until the child greets on its port, to a client that sends `opening` at once. Throws when it ends before that, or after 20
 * seconds.
 */
export async function greeted(child: Child, port: number, signal: AbortSignal, opening = ''): Promise<void> {
  const deadline = performance.now() + 2 * PATIENCE
  while (!(await greets(port, opening))) {
    if (child.hasEnded()) throw new Error(`${child.name} ended before it took mail (${await child.ended}); it said:\n${child.lastWords()}`)
    if (performance.now() > deadline) throw new Error(`${child.name} did not open port ${port} in 20 s; it said:\n${child.lastWords()}`)
    await pause(20, undefined, { signal })
  }
}

/** True if an SMTP server answers on the port. Ends the session with QUIT. */
function greets(port: number, opening: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    if (opening !== '') socket.write(opening)
    socket.setTimeout(1_000, () => socket.destroy())
    socket.once('data', () => socket.end('QUIT\r\n'))
    socket.once('error', () => resolve(false))
    socket.once('close', () => resolve(socket.bytesRead > 0))
  })
}

/** Last line that a program printed, as JSON. Throws when the program failed. */
export async function resultOf<T>(child: Child): Promise<T> {
  const end = await child.ended
  if (end !== 'exit code 0') throw new Error(`${child.name} ended (${end}): ${child.lastWords()}`)
  return JSON.parse(child.lastWords().split('\n').at(-1) ?? '') as T
}
