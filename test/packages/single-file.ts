/** Builds the executables of one file. */
import type { Architecture } from '../../scripts/package/architecture.ts'
import { command, must } from './tools.ts'

/** The reason why an executable cannot be built here; null when it can. */
export async function whyNoBuild(...programs: readonly string[]): Promise<string | null> {
  if (process.platform !== 'linux') return 'the executables are for Linux'
  const found = await Promise.all(programs.map(async (program) => ({ program, code: (await command('which', [program])).code })))
  const missing = found.filter(({ code }) => code !== 0).map(({ program }) => program)
  return missing.length === 0 ? null : `${missing.join(', ')} cannot be found`
}

/** Builds for one architecture, and resolves with the paths of the executable and of the notices. */
export async function buildSingle(out: string, architecture: Architecture): Promise<readonly [string, string]> {
  const [program = '', notices = ''] = (
    await must(process.execPath, ['scripts/package/single.ts', '--out', out, '--architecture', architecture], process.env)
  )
    .trim()
    .split('\n')
  return [program, notices]
}
