/** Programs for the tests of the Debian packages, and the packages that they test. */
import { execFile, execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { reasonToSkip, requiredNeeds } from '../support/required.ts'

export const root = join(import.meta.dirname, '../..')

const execute = promisify(execFile)

export interface Result {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** The environment of a new login: no variable of the test reaches a package. */
export const ENVIRONMENT = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' }

/** Runs a program and resolves with its exit code. */
export async function command(program: string, args: readonly string[], env: NodeJS.ProcessEnv = ENVIRONMENT): Promise<Result> {
  try {
    const { stdout, stderr } = await execute(program, [...args], { cwd: root, env, maxBuffer: 1e8 })
    return { code: 0, stdout, stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string }
    if (typeof code !== 'number') throw error
    return { code, stdout, stderr }
  }
}

/** Runs a program that must succeed, and resolves with its standard output. */
export async function must(program: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<string> {
  const { code, stdout, stderr } = await command(program, args, env)
  if (code !== 0) throw new Error(`${program} ${args.join(' ')}: exit code ${code}\n${stdout}${stderr}`)
  return stdout
}

const isInstalled = (program: string): boolean => {
  try {
    execFileSync('which', [program], { env: ENVIRONMENT, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function whyNot(programs: readonly string[]): string | null {
  if (!requiredNeeds().includes('packages'))
    return 'a test of minutes, with root and a mirror of Debian: DEFERD_TEST_REQUIRE=packages runs it'
  if (process.getuid?.() !== 0) return 'only root can start a container'
  const missing = programs.filter((program) => !isInstalled(program))
  return missing.length === 0 ? null : `${missing.join(', ')} cannot be found`
}

/** Reason why tests with these programs do not run; null when they run. */
export const skipReason = (...programs: readonly string[]): string | null => reasonToSkip('packages', whyNot(programs))

/** Builds both packages into a folder, and resolves with their paths: `deferd`, then `deferd-mta`. */
export async function buildPackages(out: string, ...args: readonly string[]): Promise<readonly [string, string]> {
  const env = { ...process.env, ...ENVIRONMENT }
  const printed = await must(process.execPath, ['scripts/package.ts', '--compression', 'gzip', '--out', out, ...args], env)
  const [relay = '', mta = ''] = printed.trim().split('\n')
  return [relay, mta]
}
