/** The copyright file of the packages of Debian (Debian Policy 12.5). */
import type { Licence } from './licences.ts'

const rule = '-'.repeat(72)

/** Debian has the text of this licence in one place for all packages. */
const APACHE = 'Licensed under the Apache License, Version 2.0; its text is in /usr/share/common-licenses/Apache-2.0.'

const section = ({ name, license, text }: Licence): string =>
  `${rule}\n/usr/lib/deferd/node_modules/${name} (${license})\n\n${license === 'Apache-2.0' ? APACHE : text.trim()}\n`

export const copyrightText = (own: string, node: string, licences: readonly Licence[]): string =>
  `deferd, an SMTP relay with a durable deferred queue\n\n${own.trim()}\n
${rule}\n/usr/lib/deferd/bin/node\n
Node.js ${node}, copyright Node.js contributors, MIT licence as above. The licences of its parts
are in /usr/lib/deferd/THIRD-PARTY-NOTICES.\n
${licences.map(section).join('\n')}`
