/** Crashes and failed commits around the transactions of notices; used by the short and the long test. */
import { expect } from 'vitest'
import { MINUTE } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { MailerDaemonHarness, type Fate } from './mailer-daemon-harness.ts'

const FATES: readonly Fate[] = ['commits', 'fails', 'dies-before', 'dies-after']

/** Expects each recipient in exactly one notice after at least this number of crashes. */
export async function noticesSurviveCrashes(least: number): Promise<void> {
  const draw = seededRandom(56).stream('fate')
  for (let crashes = 0; crashes < least;) {
    const world = new MailerDaemonHarness()
    world.daemon.start(world)
    world.fate = () => FATES[Math.floor(draw() * FATES.length)] ?? 'commits'
    const expected: string[] = []
    for (let n = 0; n < 20; n++) {
      const message = await world.message([`a${n}@x.example`, `b${n}@y.example`])
      await world.fail(message, 0)
      await world.fail(message, 1)
      expected.push(`a${n}@x.example`, `b${n}@y.example`)
    }
    await world.advance(5 * MINUTE)
    const reported = world.notices.flatMap(({ recipients }) => recipients.map(({ recipient }) => recipient))
    expect(reported.toSorted()).toEqual(expected.toSorted())
    crashes += world.crashes
  }
}
