/** `deferd retry` as a process: exit codes, signals, output, and the example of the fault tolerant shell with minutes as tenths of seconds. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../support/node-cluster.ts'

const PROGRAM = join(import.meta.dirname, '../../bin/deferd.js')

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'retry-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function retried(...args: readonly string[]) {
  const child = spawn(process.execPath, [PROGRAM, 'retry', ...args], { stdio: ['pipe', 'pipe', 'pipe'], cwd: folder })
  let [out, err] = ['', '']
  child.stdout.on('data', (text) => (out += String(text)))
  child.stderr.on('data', (text) => (err += String(text)))
  const ended = new Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, out, err }))
  })
  return { child, ended, out: () => out }
}

const lines = (file: string): readonly string[] => {
  try {
    return readFileSync(join(folder, file), 'utf8').trimEnd().split('\n')
  } catch {
    return []
  }
}

describe('deferd retry', { timeout: 120_000 }, () => {
  test('ends with 0 at the first success, with the input and the output of the command untouched', async () => {
    const run = retried('--attempts', '3', '--policy', 'fixed(10ms)', '--', 'sh', '-c', 'cat; printf "\\001bytes"; echo warning >&2')
    run.child.stdin.end('of the caller')
    expect(await run.ended).toEqual({ code: 0, out: 'of the caller\u0001bytes', err: 'warning\n' })
  })

  test.each([
    [
      'the exit code of the last run',
      ['--attempts', '3', '--policy', 'fixed(10ms)', '--', 'sh', '-c', 'echo run >> runs; exit $(wc -l < runs)'],
      3,
    ],
    ['128 + n after signal n', ['--attempts', '2', '--policy', 'fixed(10ms)', '--', 'sh', '-c', 'kill -9 $$'], 137],
    ['the exit code of the last run at the end of --for', ['--for', '1s', '--policy', 'fixed(100ms)', '--', 'sh', '-c', 'exit 7'], 7],
    ['75 when no run ended before the end of --for', ['--for', '500ms', '--', 'sleep', '600'], 75],
    [
      '75 after SIGKILL for a command that ignores SIGTERM',
      ['--for', '500ms', '--', 'sh', '-c', 'trap "" TERM; while :; do sleep 1; done'],
      75,
    ],
    ['69 for a command that does not exist', ['--attempts', '9', '--policy', 'fixed(1h)', '--', './no-such-command'], 69],
    ['64 for an unknown policy', ['--for', '1m', '--policy', 'linear', '--', 'true'], 64],
    ['64 for --for 0', ['--for', '0', '--', 'true'], 64],
    ['64 for --attempts 0', ['--attempts', '0', '--', 'true'], 64],
    ['64 without a command', ['--for', '1m'], 64],
    ['64 for an endless policy without a limit', ['--', 'true'], 64],
    ['0 for a policy that ends, without a limit', ['--policy', 'google-drive', '--', 'true'], 0],
  ] as const)('ends with %s', async (_what, args, code) => {
    expect((await retried(...args).ended).code).toBe(code)
  })

  test('passes signals on, and does not repeat the command after SIGTERM', async () => {
    const run = retried(
      '--for',
      '1m',
      '--policy',
      'fixed(10ms)',
      '--',
      'sh',
      '-c',
      'echo run >> runs; trap "echo usr1" USR1; trap "echo term; exit 3" TERM; echo ready; while :; do sleep 0.05; done',
    )
    await until('ready', 60_000, () => run.out().includes('ready'))
    run.child.kill('SIGUSR1')
    await until('passed on', 60_000, () => run.out().includes('usr1'))
    run.child.kill('SIGTERM')
    expect(await run.ended).toMatchObject({ code: 3, out: 'ready\nusr1\nterm\n' })
    expect(lines('runs')).toEqual(['run'])
  })

  test('ends in a wait with 128 + n', async () => {
    const run = retried('--for', '1h', '--policy', 'fixed(30m)', '--', 'sh', '-c', 'echo failed; exit 1')
    // A signal that comes during a run is that of the run.
    const { pid } = run.child
    const hasRun = (): boolean => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8') !== ''
    await until('waits', 60_000, () => run.out().includes('failed') && !hasRun())
    run.child.kill('SIGTERM')
    expect((await run.ended).code).toBe(143)
  })

  test('--plan prints the times and runs nothing', async () => {
    const { out, code } = await retried('--plan', '--for', '1h', '--policy', 'doubling', '--', 'sh', '-c', 'echo run >> runs').ended
    expect([code, out]).toEqual([
      0,
      'attempt 1 at 0s\nattempt 2 at 5m, after a wait of 5m\nattempt 3 at 15m, after a wait of 10m\nattempt 4 at 35m, after a wait of 20m\n',
    ])
    expect(lines('runs')).toEqual([])
  })

  test('three servers, of which two are down, for an hour of 6 s: any one serves, as soon as it is up', async () => {
    const fetch = 'echo $DEFERD_SERVER >> asked; test -e {}'
    const example = ['--for', '60s', '--policy', 'thain(T=100ms,F=2,M=1s)', '--any-of', 'x,y,z', '--', 'sh', '-c', fetch]
    writeFileSync(join(folder, 'z'), '')
    expect((await retried(...example).ended).code).toBe(0)
    expect(lines('asked')).toEqual(['x', 'y', 'z'])
    rmSync(join(folder, 'z'))
    rmSync(join(folder, 'asked'))
    const run = retried(...example)
    await until('two rounds', 60_000, () => lines('asked').length >= 6)
    writeFileSync(join(folder, 'y'), '')
    expect((await run.ended).code).toBe(0)
    const asked = lines('asked')
    expect(asked.at(-1)).toBe('y')
    expect(asked.slice(0, 6)).toEqual(['x', 'y', 'z', 'x', 'y', 'z'])
    rmSync(join(folder, 'y'))
    const none = ['--for', '6s', '--policy', 'thain(T=100ms,F=2,M=1s)', '--any-of', 'x,y,z', '--', 'sh', '-c', 'test -e {} || exit 4']
    expect((await retried(...none).ended).code).toBe(4)
  })
})
