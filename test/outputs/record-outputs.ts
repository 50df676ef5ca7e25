/** Outputs of the relay itself: the log in both formats, the metrics, and notices. */
import { BEGINNING, VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { openLog } from '../../src/telemetry/log.ts'
import { openMetrics } from '../../src/telemetry/metrics/metrics.ts'
import type { Filled } from './filled-world.ts'
import type { Collect } from './outputs.ts'

export async function recordOutputs({ world }: Filled, collect: Collect): Promise<void> {
  const { queue } = world
  const { relay } = queue
  for (const format of ['postfix', 'json'] as const) {
    let text = ''
    const write = (part: string): void => void (text += part)
    const log = openLog({ format, syslogName: 'deferd', host: 'relay', pid: 42, clock: new VirtualClock(), write })
    for (const { at, event } of queue.history) log.listen(event, BEGINNING + at)
    log.flush()
    collect(`log/${format}`, text)
  }
  const metrics = openMetrics({
    clock: queue.clock,
    tally: (largest) => queue.store.tally(largest),
    destinations: () => relay.schedulerControl.snapshot(),
    classes: () => relay.policies.classes.names,
    slots: () => relay.scheduler.destinations.slots,
    subscriptions: () => queue.reader.allSubscriptions(),
    limits: () => relay.limitStates(),
    quotas: () => relay.quotas.quotas.ratios(),
    tokens: () => relay.accessTokens.states(),
  })
  for (const { at, event } of queue.history) metrics.listen(event, BEGINNING + at)
  // Those of the process and of Node are figures of the machine.
  const own = (await metrics.render()).split('\n').filter((line) => /^(?:# (?:HELP|TYPE) )?deferd_(?!build_info)/.test(line))
  collect('metrics', `${own.join('\n')}\n`)
  for (const [n, { content }] of queue.arrivals('shop@ok.example').entries()) collect(`notices/${n + 1}`, content)
}
