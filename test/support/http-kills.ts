/** Kills a daemon that takes mail over HTTP; used by the short and the long test. */
import { expect } from 'vitest'
import { seededRandom } from '../../src/system/random.ts'
import { ApiProgram } from './api-program.ts'
import type { KillableRelay } from './killable-relay.ts'

/** Kills the daemon as soon as some mail was answered 202, again and again, and expects that all such mail is delivered. */
export async function answeredThenKilled(lab: KillableRelay, kills: number): Promise<void> {
  const program = await ApiProgram.of(lab.queueDirectory)
  for (let kill = 0; kill < kills; kill++) {
    let answered = 0
    const killed: Promise<unknown>[] = []
    // Each client sends until the daemon is gone.
    const client = async (): Promise<void> => {
      for (;;) {
        const number = lab.load.takeNumber()
        const sent = await program.mail({ to: `ann-${number}@far.example`, content: `X-Number: ${number}\r\n\r\nhi\r\n` }).catch(() => null)
        if (sent === null && killed.length === 0) throw new Error(`the daemon ended by itself: ${lab.log.slice(-3).join('\n')}`)
        if (sent === null) return
        expect(sent.status).toBe(202)
        lab.load.acknowledge(number, String(sent.json['queue_id']))
        if (++answered === 10 + (kill % 7)) killed.push(lab.die(0))
      }
    }
    await Promise.all(Array.from({ length: 4 }, client))
    await Promise.all(killed)
    await lab.startDaemon()
  }
  expect(await lab.drained(30_000)).toBe(true)
  expect(lab.acknowledged.size).toBeGreaterThanOrEqual(10 * kills)
  expect([...lab.acknowledged.keys()].filter((number) => !lab.far.delivered.has(number))).toEqual([])
}

/**
 * Kills the daemon during requests with an Idempotency-Key, which are then sent again, and expects one message for each. Returns the
 * number of requests whose first sending had its effect.
 */
export async function repeatedUntilAnswered(lab: KillableRelay, requests: number): Promise<number> {
  const program = await ApiProgram.of(lab.queueDirectory)
  const chance = seededRandom(5).stream('kills')
  lab.far.isBusy = true
  let repeated = 0
  for (let n = 0; n < requests; n++) {
    const mail = { to: `ann-${n}@far.example`, key: `order-${n}` }
    const cut = program.mail(mail).catch(() => null)
    await new Promise((resolve) => setTimeout(resolve, chance() * 12))
    await lab.die(0)
    await lab.startDaemon()
    const [lost, answer] = [await cut, await program.mail(mail)]
    expect(answer.status).toBe(202)
    if (lost !== null) expect(lost.json).toEqual(answer.json)
    if (answer.headers.get('idempotent-replayed') === 'true') repeated++
    expect(await program.queuedFor(mail.to)).toBe(1)
  }
  return repeated
}
