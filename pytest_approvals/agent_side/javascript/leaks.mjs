/** Network guard of the processes of agents; see `leaks.cjs`. */

import leaks from "./leaks.cjs";

export const { LEAKS, watchAsTold } = leaks;
