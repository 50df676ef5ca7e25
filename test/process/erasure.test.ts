/** `deferd history erase` of a daemon: SIGKILL between its slices delays it, and nothing of the addresses is left in the files of the queue. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/system/system-clock.ts'
import { KillableRelay } from '../support/killable-relay.ts'
import { Operator } from '../support/operator.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

const PATTERN = /ruled-\d+@far\.example/

function filesWith(directory: string, pattern: RegExp): readonly string[] {
  const files = readdirSync(directory).filter((name) => statSync(join(directory, name)).isFile())
  return files.filter((name) => pattern.test(readFileSync(join(directory, name)).toString('latin1')))
}

test('an erasure that SIGKILL cuts goes on after the start, and no file has the addresses at its end', async () => {
  const lab = new KillableRelay({ returned_content_retention: '7d', session_transcripts: 'failed' })
  const operator = new Operator()
  try {
    lab.far.hasRule = true
    await lab.open(4, (number) => [`ann-${number}@far.example`, `ruled-${number}@far.example`])
    await lab.startDaemon()
    await lab.acknowledges(300)
    await lab.quiet()
    while (lab.far.noticedAbout.size < lab.acknowledged.size) await pause(50)
    expect(filesWith(lab.queueDirectory, PATTERN)).not.toEqual([])
    const run = (...words: readonly string[]) =>
      operator.run(words, { env: { DEFERD_QUEUE_DIRECTORY: lab.queueDirectory }, clock: systemClock })
    const erase = ['history', 'erase', '--recipient', 'ruled-*@far.example'] as const
    const { plan } = JSON.parse((await run(...erase, '--dry-run', '--json')).out) as { readonly plan: { readonly messages: number } }
    expect(plan).toMatchObject({ live_messages: 0 })
    expect(plan.messages).toBeGreaterThanOrEqual(lab.acknowledged.size)
    const cut = run(...erase, '--reason', 'asked by ruled-1@far.example')
    const reader = await lab.openReader()
    try {
      for (const changed of [plan.messages / 5, plan.messages / 2]) {
        while (((await reader.records.audit.one(1))?.changed ?? 0) < changed) await pause(2)
        await lab.die(0)
        await lab.startDaemon()
      }
      await cut
      while ((await reader.records.audit.one(1))?.state === 'running') await pause(50)
      expect(await reader.records.audit.one(1)).toMatchObject({ state: 'done', action: 'erase', changed: plan.messages })
    } finally {
      await reader.close()
    }
    expect(filesWith(lab.queueDirectory, PATTERN)).toEqual([])
    expect((await run('history', 'list', '--recipient', 'erased-*', '--limit', '1')).out).toContain('erased-')
  } finally {
    await lab.close()
    operator.leave()
  }
}, 300_000)
