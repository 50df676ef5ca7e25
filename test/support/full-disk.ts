/** Runs the scenarios of full-disk-scenarios.ts on a small disk of its own, in a user namespace. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Why small disks cannot be made on this machine; null when they can. */
export function noSmallDisksBecause(): string | null {
  const tried = spawnSync('unshare', ['-Urm', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()])
  return tried.status === 0 ? null : 'there are no user namespaces with tmpfs'
}

/** The report of a scenario. `seconds`: length of each measurement of the throughput; 0 for none. */
export function onSmallDisk(
  scenario: 'deferred' | 'big' | 'http',
  { megabytes, seconds }: { readonly megabytes: number; readonly seconds: number },
): unknown {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-disk-'))
  try {
    const program = join(import.meta.dirname, 'full-disk-scenarios.ts')
    const command = ['-Urm', process.execPath, program, folder, scenario, String(megabytes), String(seconds)]
    const { stdout, stderr } = spawnSync('unshare', command, { encoding: 'utf8' })
    if (stdout === '') throw new Error(`the scenario failed: ${stderr}`)
    return JSON.parse(stdout)
  } finally {
    rmdirSync(folder)
  }
}
