import { expect, test } from 'vitest'
import { tokenCommand } from '../../src/daemon/token-command.ts'

test('runs a shell command with the user as its last argument', async () => {
  expect(await tokenCommand('printf "token of %s\\n"')('ann smith; false')).toBe('token of ann smith; false\n')
})

test.each([
  [
    'fails',
    'echo "secret" ; echo "login expired, run mutt_oauth2" >&2; exit 3; :',
    /ended with exit code 3: login expired, run mutt_oauth2$/,
  ],
  ['does not exist', '/nonexistent/token', /ended with exit code 127/],
  ['is killed', 'kill -9 $$; :', /failed \(SIGKILL\)/],
  ['prints without end', 'yes secret; :', /printed more than 65536 bytes/],
])('a command that %s: the error has no output', async (_, command, why) => {
  const run = tokenCommand(command)('ann')
  await expect(run).rejects.toThrow(why)
  await expect(run).rejects.not.toThrow(/secret/)
})
