/** Plants one bug and walks the small world: `node test/sim/exhaustive/try.ts NAME STEPS`. Prints what came of it as JSON. */
import { PLANTED_BUGS } from '../planted/bugs.ts';
import { plant } from '../planted/mutate.ts';

const [name, steps] = process.argv.slice(2);
const bug = PLANTED_BUGS.find((one) => one.name === name);
if (bug === undefined) throw new Error(`no planted bug is named ${JSON.stringify(name)}`);
const isPlanted = plant(bug);
const { explore } = await import('./explore.ts');
const explored = await explore({ steps: Number(steps) });
if (!isPlanted()) throw new Error(`planted bug "${bug.name}": ${bug.file} was not loaded`);
console.log(JSON.stringify(explored));
