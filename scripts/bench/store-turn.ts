/** The store without SMTP: messages are queued and delivered in a store on SQLite, in a process of its own. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { startLifeProcess } from './postgres/life-process.ts'
import { ONLY_SPEED, type Measure } from './statistics.ts'

export async function measureStore(folder: string, callers: number, messages: number): Promise<Measure> {
  const place = join(folder, 'store')
  const store = await startLifeProcess(place)
  try {
    const life = 'born leased'
    await store.run({ life, callers, messages: Math.ceil(messages / 4) })
    const { seconds, cpu } = await store.run({ life, callers, messages })
    return {
      ...ONLY_SPEED,
      cpu: Number(((cpu * 1_000) / messages).toFixed(4)),
      rate: Number((messages / seconds).toFixed(1)),
    }
  } finally {
    await store.stop()
    rmSync(place, { recursive: true, force: true })
  }
}
