// @ts-check
// Six children to begin with, each with a vote for A and one for B.

/** Votes from angles in degrees (up is 0, to the right is 90) and lengths: for A, then for B.
 * @param {[number, number][][]} each
 */
const polar = (each) =>
  Float64Array.from(each.flat().flatMap(([turn, length]) => {
    const angle = (turn * Math.PI) / 180;
    return [length * Math.sin(angle), length * Math.cos(angle)];
  }));

/** @type {Record<string, [title: string, votes: () => Float64Array]>} */
export const PRESETS = {
  nobody: ["Nobody agrees", () => polar([0, 60, 120, 180, 240, 300].map((t, i) => [[t + 5 * i, 0.8], [t * 2 + 30 - 9 * i, 0.8]]))],
  camps: ["Two camps", () => polar([[-10, 200], [5, 320], [12, 80], [130, 92], [250, 105], [10, 85]].map(([a, b]) => [[a, 0.8], [b, 0.8]]))],
  upset: ["An upset", () => polar([[-6, 100], [-2, 260], [2, 140], [6, 220], [175, 100], [185, 260]].map(([a, b]) => [[a, 0.8], [b, 0.8]]))],
  same: ["All the same", () => polar(Array(6).fill([[0, 0.7], [90, 0.7]]))],
  opposites: ["Opposites", () => polar([0, 0, 0, 180, 180, 180].map((t) => [[t, 0.8], [t + 90, 0.8]]))],
};
