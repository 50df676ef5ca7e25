/** Servers at several ports of an address answer or fail for themselves, so the scheduler is asked about each of them. */
import { expect, test } from 'vitest'
import { SmtpAgentHarness } from '../../support/smtp-agent-harness.ts'

test.each([
  ['[192.0.2.1]', '192.0.2.1'],
  ['[192.0.2.1]:2525', '192.0.2.1:2525'],
  ['[2001:db8::1]:25', '2001:db8::1'],
  ['[2001:db8::1]:2525', '[2001:db8::1]:2525'],
])('a connection to %s is one to %s', async (hop, address) => {
  const far = new SmtpAgentHarness({ config: [`relayhost=${hop}`] })
  const asked: string[] = []
  const request = far.request({ to: ['ann@far.example'] })
  const connecting = (one: string) => {
    asked.push(one)
    return null
  }
  expect(await far.attempt(request, { keepConnection: false, signal: new AbortController().signal, connecting })).toBe('passed-over')
  expect(asked).toEqual([address])
  expect(far.dialled).toEqual([])
})
