/** The copyright file of the packages: the licences of deferd, its dependencies and Node. */
import type { Dependency } from './production.ts'

export interface Licence extends Dependency {
  /** Text of the licence file; empty when the dependency has none. */
  readonly text: string
}

const rule = '-'.repeat(72)

/** Debian has the text of this licence in one place for all packages. */
const APACHE = 'Licensed under the Apache License, Version 2.0; its text is in /usr/share/common-licenses/Apache-2.0.'

function section({ name, license, text }: Licence): string {
  const body =
    license === 'Apache-2.0' ? APACHE : text.trim() === '' ? `Licensed under ${license}, as its package.json states.` : text.trim()
  return `${rule}\n/usr/lib/deferd/node_modules/${name} (${license})\n\n${body}\n`
}

export const copyrightText = (own: string, node: string, licences: readonly Licence[]): string =>
  `deferd, an SMTP relay with a durable deferred queue\n\n${own.trim()}\n
${rule}\n/usr/lib/deferd/bin/node\n
Node.js ${node}, copyright Node.js contributors, MIT licence as above. Its parts have the
licences in https://github.com/nodejs/node/blob/v${node}/LICENSE.\n
${licences.map(section).join('\n')}`
