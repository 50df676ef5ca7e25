/** The words of `deferd suppression add` about mail to the address. */
import { afterEach, expect, test } from 'vitest'
import { Operator } from '../support/operator.ts'

let operator: Operator
afterEach(() => operator.leave())

test.each([
  { setting: 'yes', more: '' },
  { setting: 'no', more: 'mail to it is accepted, because suppression = no; set suppression = yes to refuse it\n' },
  { setting: 'warn', more: 'mail to it is accepted, because suppression = warn; set suppression = yes to refuse it\n' },
])('an address is on the list, whose use is said: $setting', async ({ setting, more }) => {
  operator = new Operator()
  await operator.own(async () => undefined)
  const said = await operator.says('suppression', 'add', 'bob@far.example', '-o', `suppression=${setting}`)
  expect(said).toBe(`bob@far.example: on the list for all senders (manual), until it is removed\n${more}`)
})
