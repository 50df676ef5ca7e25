/** A far side behind a network in memory, on a virtual clock, with nothing of our own in front of it. */
import { seededRandom } from '../../src/mail/random.ts'
import type { FarEvent, ReceivedMail } from '../../src/testkit/far-side/events.ts'
import { FarSide } from '../../src/testkit/far-side/far-side.ts'
import { readScript } from '../../src/testkit/far-side/script.ts'
import { Driver } from '../../src/testkit/idle.ts'
import { MemoryNet } from '../../src/testkit/memory-net.ts'
import { BEGINNING, VirtualClock } from '../../src/testkit/virtual-clock.ts'
import { probe, type ProbeMail } from './probe-client.ts'

export function farWorld(toml = '', { seed = 1, addresses = false } = {}) {
  const clock = new VirtualClock()
  const mails: ReceivedMail[] = []
  const events: FarEvent[] = []
  const far = new FarSide({
    clock,
    random: seededRandom(seed),
    script: readScript(toml, 'faults.toml'),
    addresses,
    hear: (event) => events.push(event),
    keep: (mail) => mails.push(mail),
  })
  const net = new MemoryNet(clock, far)
  const driver = new Driver(clock, { net })

  /** What clients meet that deliver these mails, all at once, at each of the times. */
  const deliver = async (mailsToSend: readonly ProbeMail[], times: readonly number[] = [0]): Promise<string[][]> => {
    const outcomes: string[][] = times.map(() => [])
    for (const [round, time] of times.entries()) {
      clock.alarm(BEGINNING + time, () => {
        for (const [index, mail] of mailsToSend.entries()) void probe(net, clock, mail).then((met) => (outcomes[round]![index] = met))
      })
    }
    await driver.runWhile(() => clock.pending > 0)
    return outcomes
  }

  return { clock, far, net, driver, mails, events, deliver }
}
