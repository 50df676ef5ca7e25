/** Scripted remote servers on a network in memory and a virtual clock, with a recorder between them and the clients. */
import { ForwardingNet, type DialOptions } from '../../src/system/net.ts'
import { MINUTE, type Duration } from '../../src/system/clock.ts'
import { Recorder } from '../../src/testkit/record/recorder.ts'
import { recordedScript, type ScriptOptions } from '../../src/testkit/record/recorded-script.ts'
import type { HostIdentity } from '../../src/testkit/remote/policy-host.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { probe, type ProbeMail } from './probe-client.ts'
import { openRemote } from './remote-harness.ts'

const PROXY = { address: '127.0.0.1', port: 2526 }
const SMTP = 25
const TIMES: readonly Duration[] = [0, 5 * MINUTE, 10 * MINUTE]

/** Dials the recorder in place of the hosts of the network. */
class ThroughProxy extends ForwardingNet {
  override dial(options: DialOptions) {
    return this.net.dial(options.port === SMTP ? { ...options, ...PROXY } : options)
  }
}

export interface Recorded {
  /** Results of each client in each round. */
  readonly outcomes: readonly (readonly string[])[]
  readonly text: string
}

export interface RecordOptions extends Partial<ScriptOptions> {
  readonly addresses?: boolean
  readonly times?: readonly Duration[]
  readonly identity?: HostIdentity | null
}

/** Records clients that deliver these mails, all at once, at each of the times, to the host `mx.DOMAIN` of a script. */
export async function record(script: string, domain: string, mails: readonly ProbeMail[], options: RecordOptions = {}): Promise<Recorded> {
  const { addresses = false, times = TIMES, identity = null, keepsAddresses = false, maxGap = 5 * MINUTE } = options
  const { clock, net, driver } = openRemote(script, { addresses })
  const host = `mx.${domain}`
  const found = await net.lookupAddresses(host, 4)
  if (found.kind !== 'found') throw new Error(`${host} has no address`)
  const relay = { host, port: SMTP, addresses: found.records }
  const recorder = new Recorder({ net, clock, relay, keepsAddresses, identity })
  await recorder.open(PROXY)
  const outcomes: string[][] = times.map(() => [])
  for (const [round, time] of times.entries()) {
    clock.alarm(BEGINNING + time, () => {
      for (const [index, mail] of mails.entries())
        void probe(new ThroughProxy(net), clock, mail).then((met) => (outcomes[round]![index] = met))
    })
  }
  await driver.runWhile(() => clock.pending > 0)
  const recording = await recorder.close()
  return { outcomes, text: recordedScript(recording, { hasTls: identity !== null, keepsAddresses, maxGap }).text }
}

/** Results of clients that deliver a mail at each of the times to a sink with a recorded script. */
export async function replay(text: string, mail: ProbeMail, times: readonly Duration[] = TIMES): Promise<readonly (readonly string[])[]> {
  const { clock, far, net, driver } = openRemote(text)
  await net.listen(PROXY, (socket) => void far.accept(socket, 'sink'))
  const outcomes: string[][] = []
  for (const [round, time] of times.entries()) {
    clock.alarm(BEGINNING + time, () => {
      void probe(new ThroughProxy(net), clock, mail).then((met) => (outcomes[round] = [met]))
    })
  }
  await driver.runWhile(() => clock.pending > 0)
  return outcomes
}
