/** The shares of a queue, as the command shows them while a daemon delivers. */
import { expect, test } from 'vitest'
import { Operator } from '../support/operator.ts'
import { PageDaemon } from '../support/page-daemon.ts'
import { RemoteLedger } from '../support/remote-ledger.ts'

test('the command has the deliveries of the running daemon, as its page has them', async () => {
  const far = new RemoteLedger()
  const daemon = await PageDaemon.start({ relayhost: `[127.0.0.1]:${await far.listen()}`, fair_share: 'yes' })
  const operator = new Operator()
  try {
    await daemon.send(Array.from({ length: 3 }, (_, n) => ({ from: 'app@shop.example', to: `user${n}@far.example` })))
    const started = async (): Promise<number> => {
      const text = await operator.says('queue', 'shares', '--json', '-o', `queue_directory=${daemon.queueDirectory}`)
      const line = text.split('\n').find((one) => one.includes('"shop.example"'))
      return line === undefined ? 0 : (JSON.parse(line) as { readonly started: number }).started
    }
    await expect.poll(started, { timeout: 20_000 }).toBe(3)
  } finally {
    operator.leave()
    await daemon.close()
    await far.close()
  }
})
