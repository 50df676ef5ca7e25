/** A Debian system in a container, with systemd as its first process and no network but loopback. */
import { spawn, type ChildProcess } from 'node:child_process'
import { copyFileSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { systemClock } from '../../src/system/system-clock.ts'
import { seconds, sleep } from '../../src/system/clock.ts'
import { command, ENVIRONMENT, must, type Result } from './tools.ts'

/** Folder of the packages of Postfix in the container, which has no network. */
export const POSTFIX = '/var/tmp/postfix'

const DOWNLOAD = `chroot "$1" sh -c "mkdir -p ${POSTFIX}/partial && apt-get --yes --no-install-recommends --download-only -o Dir::Cache::archives=${POSTFIX} install postfix"`

const INCLUDED = ['adduser', 'libgcc-s1', 'libstdc++6', 'sudo', 'systemd', 'systemd-sysv']

/** Makes the root of a minimal Debian 12. */
export const makeRoot = (folder: string): Promise<string> =>
  must('mmdebstrap', ['--quiet', '--variant=apt', `--include=${INCLUDED.join(',')}`, `--customize-hook=${DOWNLOAD}`, 'bookworm', folder])

const NSPAWN = ['--quiet', '--register=no', '--keep-unit', '--private-network', '--boot']

export class DebianMachine {
  readonly #folder: string
  readonly #process: ChildProcess

  private constructor(folder: string, process: ChildProcess) {
    this.#folder = folder
    this.#process = process
  }

  /** Boots the system whose root is `folder`. Resolves when systemd has started the units. */
  static async boot(folder: string): Promise<DebianMachine> {
    const child = spawn('systemd-nspawn', [...NSPAWN, `--directory=${folder}`], {
      env: ENVIRONMENT,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const machine = new DebianMachine(folder, child)
    await machine.until(async () => {
      if (child.exitCode !== null) throw new Error(`systemd-nspawn ended with ${child.exitCode}`)
      return machine.#leader() !== undefined && /^(?:running|degraded)/.test((await machine.run('systemctl is-system-running')).stdout)
    })
    // sudo looks the name of the machine up, and tells root by mail when it cannot.
    await machine.must('echo "127.0.1.1 $(hostname)" >> /etc/hosts')
    return machine
  }

  /** Copies files to /root. */
  copy(...files: readonly string[]): void {
    for (const file of files) copyFileSync(file, join(this.#folder, 'root', basename(file)))
  }

  /** Runs a shell command as root in the container. */
  run(text: string): Promise<Result> {
    return command('nsenter', [`--target=${this.#leader()}`, '--all', 'sh', '-c', text], { ...ENVIRONMENT, HOME: '/root' })
  }

  /** Runs a shell command that must succeed, and resolves with its standard output without the final line feed. */
  async must(text: string): Promise<string> {
    const { code, stdout, stderr } = await this.run(text)
    if (code !== 0) throw new Error(`${text}: exit code ${code}\n${stdout}${stderr}`)
    return stdout.trimEnd()
  }

  /** Waits until the condition holds. Throws after a minute. */
  async until(holds: () => Promise<boolean>): Promise<void> {
    for (let tries = 0; tries < 240; tries++) {
      if (await holds()) return
      await sleep(systemClock, seconds(0.25))
    }
    throw new Error(`a minute was not enough for: ${holds.toString()}`)
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => void this.#process.once('exit', resolve))
    const leader = this.#leader()
    if (leader !== undefined) process.kill(leader, 'SIGKILL')
    await ended
  }

  /** Process id of the container's first process; undefined before its start and after its end. */
  #leader(): number | undefined {
    const { pid, exitCode } = this.#process
    if (pid === undefined || exitCode !== null) return undefined
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
    return child === undefined || child === '' ? undefined : Number(child)
  }
}
