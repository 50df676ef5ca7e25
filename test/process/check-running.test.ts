/** `deferd check --running` of a daemon that starts, answers, is stopped and has ended. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { portBelowEphemeral } from '../support/ports.ts'
import { DaemonFolder } from '../support/started-daemon.ts'

let folder: DaemonFolder
beforeEach(() => {
  folder = new DaemonFolder()
})
afterEach(() => folder.close())

const running = (...options: readonly string[]) => folder.run(['check', '--running', ...options]).ended

test('the daemon answers when its ports are open, and not before', { timeout: 120_000 }, async () => {
  expect(await running()).toMatchObject({
    code: 69,
    err: '',
    out: expect.stringMatching(/^error +daemon +none runs with queue_directory = .*: deferd start\n$/),
  })

  const port = await portBelowEphemeral()
  const { child, ended } = folder.run(['start'], { smtpd_listen: `127.0.0.1:${port}` })
  while ((await running()).code !== 0) await sleep(50)
  await once(connect(port, '127.0.0.1'), 'connect')
  const { code, out } = await running('--json')
  expect([code, JSON.parse(out)]).toEqual([
    0,
    { what: 'daemon', verdict: 'ok', text: expect.stringContaining('runs with queue_directory') },
  ])

  child.kill('SIGSTOP')
  expect(await running()).toMatchObject({ code: 75, err: expect.stringContaining('has not answered for 5 seconds') })
  child.kill('SIGCONT')
  child.kill('SIGKILL')
  await ended
  expect(await running()).toMatchObject({ code: 69 })
})

test('it is combined with no other check', async () => {
  expect(await running('--full')).toMatchObject({
    code: 64,
    err: expect.stringContaining("'--running' cannot be used with option '--full'"),
  })
})
