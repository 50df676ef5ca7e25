import { expect, test } from 'vitest'
import { isMountedSecretIn } from '../../../src/config/values/mounted-secret.ts'

/** Mounts of a container of Kubernetes with two secrets, and of a folder in memory that programs of the machine share. */
const MOUNTS = String.raw`
23 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 23 0:25 / /tmp rw,nosuid - tmpfs tmpfs rw
31 23 0:26 / /etc rw - ext4 /dev/sda1 rw
40 23 0:40 / /run/secrets ro,relatime shared:1 - tmpfs tmpfs rw,size=1k
41 23 0:41 / /etc/deferd/my\040keys ro,relatime master:2 - ramfs ramfs rw
42 23 0:42 / /srv/disk ro,relatime - ext4 /dev/sdb1 ro
43 40 0:43 / /run/secrets/cache rw,relatime - tmpfs tmpfs rw
`

test.each([
  ['/run/secrets/key.pem', true],
  ['/run/secrets/..2026_11/key.pem', true],
  ['/etc/deferd/my keys/key.pem', true],
  ['/run/secrets-of-ann/key.pem', false],
  ['/run/secrets/cache/key.pem', false],
  ['/tmp/key.pem', false],
  ['/srv/disk/key.pem', false],
  ['/etc/deferd/key.pem', false],
])('%s is mounted as a secret: %s', (path, isSecret) => {
  expect(isMountedSecretIn(path, MOUNTS)).toBe(isSecret)
})
