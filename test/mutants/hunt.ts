/** Lets the simulation loose on a copy of the sources with one bug planted in it. */
import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Weather } from '../simulation/generator.ts'
import type { Mutant } from './mutants.ts'

export interface Catch {
  readonly mutant: Mutant
  /** The first seed in which the bug was seen; null when it was in none. */
  readonly seed: number | null
  readonly weather: Weather
  /** Which invariant it violates, or how the relay ended. */
  readonly how: string
}

const ROOT = resolve(import.meta.dirname, '../..')
/** Much longer than all seeds take: a relay that runs in circles is found out, too. */
const PATIENCE = 300_000

/** Half of the seeds in fair weather, and when that was not enough half of them in a storm. */
export async function hunt(mutant: Mutant, seeds: number): Promise<Catch> {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-mutant-'))
  try {
    for (const part of ['src', 'test/simulation', 'migrations', 'package.json'])
      cpSync(join(ROOT, part), join(folder, part), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    plant(mutant, folder)
    const fair = await simulated(folder, 'fair', Math.ceil(seeds / 2))
    return { mutant, ...(fair.seed === null ? await simulated(folder, 'stormy', Math.floor(seeds / 2)) : fair) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function plant(mutant: Mutant, folder: string): void {
  writeFileSync(join(folder, mutant.file), planted(mutant))
}

/** The file with the bug in it. Throws when there is no longer one place for it. */
export function planted({ name, file, replace, by }: Mutant): string {
  const parts = readFileSync(join(ROOT, file), 'utf8').split(replace)
  if (parts.length !== 2) throw new Error(`mutant "${name}": its text is ${parts.length - 1} times in ${file}, and should be there once`)
  return parts.join(by)
}

/** The last line that the simulation prints is about the seed in which something was found, or about the last one. */
function simulated(folder: string, weather: Weather, seeds: number): Promise<Omit<Catch, 'mutant'>> {
  const script = join(folder, 'test/simulation/simulate.ts')
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, [script, '1', String(seeds), '--until-caught', ...(weather === 'stormy' ? ['--stormy'] : [])], {
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: PATIENCE,
    })
    let output = ''
    child.stdout.on('data', (bytes: Buffer) => (output += bytes.toString()))
    child.once('error', fail)
    child.once('close', (code, signal) => {
      const last = JSON.parse(output.trim().split('\n').at(-1) || '{"seed":0}') as {
        readonly seed: number
        readonly found?: { readonly invariant: string }
      }
      if (signal !== null) done({ seed: last.seed + 1, weather, how: 'runs in circles' })
      else if (code !== 0) done({ seed: last.seed + 1, weather, how: 'the relay broke down' })
      else done({ seed: last.found === undefined ? null : last.seed, weather, how: last.found?.invariant ?? 'not caught' })
    })
  })
}

/** All of them, two at a time. */
export async function huntAll(mutants: readonly Mutant[], seeds: number): Promise<readonly Catch[]> {
  const catches: Catch[] = []
  const waiting = [...mutants]
  const hunter = async () => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) catches.push(await hunt(mutant, seeds))
  }
  await Promise.all([hunter(), hunter()])
  return mutants.flatMap((mutant) => catches.filter((one) => one.mutant === mutant))
}
