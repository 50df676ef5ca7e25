/** A message enters the intake once: no part calls back into it between its acceptance and its delivery. */
import { Session } from 'node:inspector/promises'
import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { createWorld } from '../../../src/testkit/index.ts'

/** Numbers of calls of the methods of Intake, and of functions in them, during some work. */
async function callsDuring(work: () => Promise<void>): Promise<ReadonlyMap<string, number>> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await session.post('Profiler.takePreciseCoverage')
  await work()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  session.disconnect()
  const { functions = [] } = result.find(({ url }) => url.endsWith('/src/queue/intake/intake.ts')) ?? {}
  return new Map(
    functions.flatMap(({ functionName, ranges: [range] }) => (range === undefined ? [] : [[functionName, range.count] as const])),
  )
}

test('one message, delivered at its first attempt', async () => {
  const world = await createWorld({ seed: 1 })
  try {
    const transport = createTransport(world.transport())
    const calls = await callsDuring(async () => {
      await transport.sendMail({ from: 'app@us.example', to: 'ann@far.example', text: 'hi' })
      await world.advance('1m')
    })
    expect(world.story('ann@far.example').at(-1)).toContain('delivered')
    // V8 counts each part of an asynchronous method: these two have one.
    const once = ['prepare', '#committed']
    expect(once.map((name) => [name, calls.get(name)])).toEqual(once.map((name) => [name, 1]))
  } finally {
    await world.close()
  }
})
