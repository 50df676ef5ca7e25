/**
 * docs/commands.md, out of the help texts: what is documented is what there is.
 */
import type { Command } from 'commander'
import { POSTFIX_NAMES } from './postfix-names.ts'

const INTRODUCTION = `# Commands

<!-- Written by scripts/docs.ts out of the help texts; do not edit. -->

Every command takes \`--config FILE\` and \`-o name=value\`, and \`--json\` where it prints data (one object per line). Looking
at the queue works whether or not the daemon runs. What changes the queue is done by the daemon, or by the command
itself while no daemon runs; it leaves a row in \`deferd audit\`. Text that came from the network never reaches a terminal
with control characters in it.

Exit codes are those of sysexits(3): 64 wrong usage, 65 no such message or destination, 69 no such queue or a port in use,
75 try again later (another process owns the queue), 77 not permitted, 78 configuration, 70 a bug.

## Under Postfix’s names

\`sendmail\`, \`mailq\`, \`postqueue\`, \`postsuper\`, \`postcat\` and \`qshape\` do what Postfix users expect, as \`deferd mailq\` and the
like, or when the executable is called by that name (\`ln -s …/bin/deferd.js /usr/sbin/sendmail\`):

| command | options |
| --- | --- |
${[...POSTFIX_NAMES].map(([name, { options }]) => `| \`${name}\` | ${options} |\n`).join('')}
`

/** A command's own help text, with what is added behind it. */
function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (part) => void (text += part), getOutHelpWidth: () => 100 })
  command.outputHelp()
  return text.trim()
}

function* sections(command: Command, path: string): Generator<string> {
  if (command.commands.length === 0) yield `## ${path}\n\n\`\`\`\n${helpOf(command)}\n\`\`\`\n`
  for (const sub of command.commands) yield* sections(sub, `${path} ${sub.name()}`)
}

export const commandsPage = (program: Command): string => INTRODUCTION + [...sections(program, program.name())].join('\n')
