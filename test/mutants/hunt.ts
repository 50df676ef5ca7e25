/** Runs the simulation on a copy of the sources with one planted bug. */
import { execFile, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Density } from '../simulation/generator.ts'
import type { Mutant } from './mutants.ts'

export interface Catch {
  readonly mutant: Mutant
  /** The first seed in which the bug was seen; null when it was in none. */
  readonly seed: number | null
  readonly density: Density
  /** The violated invariant, or the end of the relay. */
  readonly how: string
}

const ROOT = resolve(import.meta.dirname, '../..')
/** Much longer than a seed takes, also on a busy machine: a relay that runs in circles is found out, too. */
const PATIENCE = 120_000

/** Copies the sources and the simulation to a new folder. */
function copySources(): string {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-mutant-'))
  for (const part of ['src', 'test/simulation', 'test/support', 'migrations', 'package.json'])
    cpSync(join(ROOT, part), join(folder, part), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** Half of the seeds with few random steps, and when that was not enough half of them with many. Leaves the copy in `folder` without the bug. */
async function hunt(mutant: Mutant, seeds: number, script: string, folder: string): Promise<Catch> {
  plant(mutant, folder)
  try {
    const sparse = await simulated(folder, script, 'sparse', Math.ceil(seeds / 2))
    return { mutant, ...(sparse.seed === null ? await simulated(folder, script, 'dense', Math.floor(seeds / 2)) : sparse) }
  } finally {
    cpSync(join(ROOT, mutant.file), join(folder, mutant.file))
  }
}

/** Throws when a copy without a bug does not run, or is found to have one: it would be seen in every mutant. */
async function assertSound(folder: string, script: string): Promise<void> {
  const { seed, how } = await simulated(folder, script, 'sparse', 1)
  if (seed !== null) throw new Error(`the sources without a planted bug: ${how}`)
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
function simulated(folder: string, name: string, density: Density, seeds: number): Promise<Omit<Catch, 'mutant'>> {
  const [file = '', ...options] = name.split(' ')
  const script = join(folder, 'test/simulation', file)
  return new Promise((done, fail) => {
    const args = [script, '1', String(seeds), '--until-caught', ...options, ...(density === 'dense' ? ['--dense'] : [])]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    const silence = setTimeout(() => child.kill(), PATIENCE)
    let output = ''
    child.stdout.on('data', (bytes: Buffer) => {
      output += bytes.toString()
      silence.refresh()
    })
    child.once('error', fail)
    child.once('close', (code, signal) => {
      clearTimeout(silence)
      const last = JSON.parse(output.trim().split('\n').at(-1) || '{"seed":0}') as {
        readonly seed: number
        readonly found?: { readonly invariant: string }
      }
      if (signal !== null) done({ seed: last.seed + 1, density, how: 'runs in circles' })
      else if (code !== 0) done({ seed: last.seed + 1, density, how: 'the relay broke down' })
      else done({ seed: last.found === undefined ? null : last.seed, density, how: last.found?.invariant ?? 'not caught' })
    })
  })
}

/** Compiler errors of mutants, unused names aside. Mutants of different files are planted together, to run tsc less often. */
export async function compilerErrors(mutants: readonly Mutant[]): Promise<readonly string[]> {
  const now = mutants.filter(({ file }, i) => mutants.findIndex((one) => one.file === file) === i)
  if (now.length === 0) return []
  const folder = mkdtempSync(join(tmpdir(), 'deferd-mutants-'))
  try {
    for (const part of ['src', 'package.json', 'tsconfig.json']) cpSync(join(ROOT, part), join(folder, part), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    for (const mutant of now) plant(mutant, folder)
    const errors = await compile(folder)
    return [...errors, ...(await compilerErrors(mutants.filter((mutant) => !now.includes(mutant))))]
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const compile = (folder: string): Promise<readonly string[]> =>
  new Promise((done) => {
    const args = ['--pretty', 'false', '--noUnusedLocals', 'false', '--noUnusedParameters', 'false']
    execFile(join(ROOT, 'node_modules/.bin/tsc'), args, { cwd: folder }, (_, stdout) =>
      done(stdout.split('\n').filter((line) => line !== '')),
    )
  })

/**
 * All of them, two at a time, each half in one copy of the sources: Node's compile cache knows a file by its path. `script` is a simulation
 * under test/simulation, with its options.
 */
export async function huntAll(mutants: readonly Mutant[], seeds: number, script = 'simulate.ts'): Promise<readonly Catch[]> {
  const catches: Catch[] = []
  const waiting = [...mutants]
  const hunter = async () => {
    const folder = copySources()
    try {
      await assertSound(folder, script)
      for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift())
        catches.push(await hunt(mutant, seeds, script, folder))
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
  await Promise.all([hunter(), hunter()])
  return mutants.flatMap((mutant) => catches.filter((one) => one.mutant === mutant))
}
