/** Webhooks in real time: an outage of the receiver with kills of the daemon, and kills of the node that sends. */
import { expect, test } from 'vitest'
import { countFrom, printFigures } from '../support/figures.ts'
import { killedSender } from '../support/nodes/killed-sender.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'
import { webhookOutage } from '../support/webhook-outage.ts'

const reason = reasonWithoutPostgres()
const AWAY = countFrom('WEBHOOK_AWAY_SECONDS', 60)
const KILLS = countFrom('WEBHOOK_KILLS', 5)
const SENDER_KILLS = countFrom('SENDER_KILLS', 8)

test(
  `a receiver is away for ${AWAY} s under load, and the daemon is killed ${KILLS} times: it gets each event in order, and no other`,
  { timeout: 900_000 },
  async () => {
    const { faults, ...figures } = await webhookOutage({ away: AWAY * 1_000, kills: KILLS })
    printFigures('webhooks, receiver away', { ...figures, 'wrong signatures, lost or invented events': faults.length })
    expect(faults).toEqual([])
    expect(figures.outOfOrder).toBe(0)
    expect(figures.messages).toBeGreaterThanOrEqual(figures.acknowledged)
    expect(figures.acknowledged).toBeGreaterThan(5 * AWAY)
    // A kill repeats at most the events of one read.
    expect(figures.repeated).toBeLessThanOrEqual(100 * (KILLS + 1))
  },
)

test.skipIf(reason !== null)(
  `the node of three that sends is killed ${SENDER_KILLS} times, beside slow transactions: each event has one id, in order${reason === null ? '' : ` (skipped: ${reason})`}`,
  { timeout: 1_800_000 },
  async () => {
    const { faults, ...figures } = await killedSender({ kills: SENDER_KILLS, interval: 4_000 })
    printFigures('webhooks, sending node killed', { ...figures, 'wrong signatures, lost or invented events': faults.length })
    expect(faults).toEqual([])
    expect(figures.outOfOrder).toBe(0)
    expect(figures.messages).toBeGreaterThanOrEqual(figures.acknowledged)
    expect(figures.repeated).toBeLessThanOrEqual(100 * SENDER_KILLS)
  },
)
