/** Scripted remote servers on a network in memory and a virtual clock, without a relay. */
import { seededRandom } from '../../src/system/random.ts'
import type { RemoteEvent, ReceivedMail } from '../../src/testkit/remote/remote-events.ts'
import { RemoteNetwork } from '../../src/testkit/remote/remote-network.ts'
import { readScript } from '../../src/testkit/remote/script.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { MemoryNet } from '../../src/testkit/virtual/memory-net.ts'
import { BEGINNING, VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { probe, type ProbeMail } from './probe-client.ts'

export function openRemote(toml = '', { seed = 1, addresses = false } = {}) {
  const clock = new VirtualClock()
  const mails: ReceivedMail[] = []
  const events: RemoteEvent[] = []
  const far = new RemoteNetwork({
    clock,
    random: seededRandom(seed),
    script: readScript(toml, 'faults.toml'),
    addresses,
    onEvent: (event) => events.push(event),
    keep: (mail) => mails.push(mail),
  })
  const net = new MemoryNet(clock, far)
  const driver = new TimeDriver(clock, { net })

  /** Results of clients that deliver these mails, all at once, at each of the times. */
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
