/* A party's model in another language: a scorecard with a cap, spoken to in lines of text.
 *
 *     c = 8 tanh((w . x + b) / 8)          parameters: w (one per column), b
 *
 * Build:  cc -O2 -o scorecard scorecard.c -lm
 * The protocol is in docs/black-box-models.md. Nothing here knows anything of gradients.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double *numbers(long count) {
    double *values = malloc((count > 0 ? count : 1) * sizeof *values);
    if (values == NULL) exit(3);
    for (long i = 0; i < count; i++)
        if (scanf("%lf", &values[i]) != 1) exit(2);
    return values;
}

int main(void) {
    long columns, vectors, rows;
    if (scanf(" start %ld", &columns) != 1) return 2;
    printf("%ld 1\n", columns + 1);
    fflush(stdout);
    while (scanf(" forward %ld %ld", &vectors, &rows) == 2) {
        double *w = numbers(vectors * (columns + 1));
        double *x = numbers(rows * columns);
        for (long v = 0; v < vectors; v++)
            for (long r = 0; r < rows; r++) {
                double score = w[v * (columns + 1) + columns];
                for (long j = 0; j < columns; j++)
                    score += w[v * (columns + 1) + j] * x[r * columns + j];
                printf("%.17g\n", 8 * tanh(score / 8));
            }
        fflush(stdout); /* an answer that stays in a buffer is no answer */
        free(w);
        free(x);
    }
    return 0;
}
